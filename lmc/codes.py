"""Every diagnostic's code with its one-line title, by group.  `lmc explain CODE` has a page for each.

Nothing here knows where a code is used; a test checks that each code in the sources stands in this table.
"""

CODES: dict[str, str] = {
    # E00 layout and lexing
    # E01 syntax
    # E02 names and imports
    # E03 types
    # E04 roles and generation
    # E05 fork, join and dataflow
    # E06 constraints
    "E0641": "no value fits in `max_tokens`",
    "E0642": "the model's tokens cannot spell any value",
    # E07 externs
    "E0711": "an extern is declared and nothing is bound to it",
    "E0712": "the bound function does not take the declared arguments",
    "E0713": "an extern failed",
    "E0714": "an extern returned something of another type",
    "E0715": "a file of externs cannot be loaded",
    # E08 models and run time
    "E0801": "no model of this name",
    "E0802": "the model could not be fetched",
    "E0803": "checksum mismatch in a model file",
    "E0804": "a file of the model is missing",
    "E0805": "the model's tokenizer cannot be used",
    "E0806": "a model file cannot be read",
    "E0807": "the cache folder cannot be written",
    "E0808": "the model's chat template cannot be used",
    "E0811": "a model with this configuration is not supported",
    "E0812": "an unknown key in a model's config.json",
    "E0815": "the tensors of a model do not fit its configuration",
    "E0816": "this machine cannot compute deterministically in this dtype",
    "E0817": "the model's logits are not finite",
    "E0818": "no token may come next",
    "E0819": "a request is larger than the pool of keys and values",
    "E0820": "the model failed in a forward pass",
    "E0831": "the program called `fail`",
    "E0832": "an assertion failed",
    "E0833": "an operation failed on these values",
    "E0834": "there is no input",
    "E0835": "a typed value was cut",
    "E0836": "a generated value does not have its type",
    "E0837": "the prompt is longer than the model's context",
    "E0838": "a budget is used up",
    "E0839": "the run was cancelled",
    "E0840": "the conversation cannot go on like this",
    "E0841": "an option of a generation has a wrong value",
    "E0842": "the options of a choice are empty or repeated",
    "E0843": "something inside `lmc` is broken",
    "E0851": "a wrong argument",
    "E0852": "no such function in the program",
    "E0853": "a file cannot be read or written",
    # E09 IR, artifacts, and what this version does not execute
    "E0901": "parsed and checked, but not executed by this version",
    "E0902": "the text form of the IR cannot be read",
    "E0903": "the IR is broken",
    "E0904": "the compiled program cannot be read",
    # W1 warnings
}
