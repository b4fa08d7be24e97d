// Starts `lmc lsp` and connects the editor to it.  All that it can do is in the server.

const { workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

exports.activate = async function () {
  const command = workspace.getConfiguration("lmp").get("command");
  client = new LanguageClient(
    "lmp",
    "LMP",
    { command, args: ["lsp"], transport: TransportKind.stdio },
    {
      documentSelector: [{ language: "lmp" }],
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.lmp") },
    },
  );
  await client.start();
};

exports.deactivate = function () {
  return client?.stop();
};
