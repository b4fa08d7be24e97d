"""Colours for `.lmp` programs wherever Pygments is used: Sphinx, MkDocs, LaTeX, `pygmentize -l lmp`.

    "Hi ${name} # no comment"     text, a hole that is code again, text

Pygments finds it through the entry point `pygments.lexers`.  This file reads no tree: it must colour broken programs too.
"""

from __future__ import annotations

from pygments.lexer import RegexLexer, bygroups, default, include, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from lmc.parser.words import BUILTIN_FUNCTIONS, BUILTIN_TYPES, CONSTANTS, KEYWORDS, ROLES

#: Words that begin an item and are names elsewhere.
ITEM_WORDS = ("type", "part", "extern", "pure", "test", "config")


def _word(*names: str) -> words:
    # Not behind a dot, and not before `=` in a call: there any word is a field's or an argument's name.
    return words(sorted(names), prefix=r"(?<![\w.])", suffix=r"\b(?!=(?!=))")


class LmpLexer(RegexLexer):
    """Programs for language models, in `.lmp` files."""

    name = "LMP"
    aliases = ["lmp"]
    filenames = ["*.lmp"]
    mimetypes = ["text/x-lmp"]

    tokens = {
        "root": [
            (r"^(type|part)(\s+)([^\W\d]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (r"^(pure)(\s+)(?=extern\b)", bygroups(Keyword.Declaration, Whitespace)),
            (r"^(extern)(\s+)(?=def\b)", bygroups(Keyword.Declaration, Whitespace)),
            (r'^(test)(\s+)(?=")', bygroups(Keyword.Declaration, Whitespace)),
            (r"^(config)(\s*)(:)", bygroups(Keyword.Declaration, Whitespace, Punctuation)),
            (r"^(def)(\s+)([^\W\d]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (r"(def)(\s+)([^\W\d]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (rf"^(\s*)({'|'.join(sorted(ROLES))})(\s*)(:)", bygroups(Whitespace, Keyword.Namespace, Whitespace, Punctuation)),
            include("code"),
            (r"[{}]", Punctuation),
        ],
        "code": [
            (r"\s+", Whitespace),
            (r"#.*", Comment.Single),
            include("strings"),
            (_word(*CONSTANTS), Keyword.Constant),
            (_word("here"), Name.Builtin.Pseudo),
            (_word("and", "or", "not", "in", "is"), Operator.Word),
            (_word(*(KEYWORDS - {"and", "or", "not", "in", "is"})), Keyword),
            (_word(*BUILTIN_TYPES), Keyword.Type),
            (_word(*BUILTIN_FUNCTIONS), Name.Builtin),
            (r"(?<=\.)[^\W\d]\w*", Name.Attribute),
            (r"[^\W\d]\w*(?==(?!=))", Name.Variable),
            (r"[^\W\d]\w*", Name),
            (r"\d[\d_]*(?:\.\d[\d_]*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)", Number.Float),
            (r"\d[\d_]*", Number.Integer),
            (r"->|:=|\.\.|\*\*=?|//=?|[-+*/%]=?|[<>=!]=|[<>=|]", Operator),
            (r"[()\[\],:.]", Punctuation),
        ],
        "strings": [
            (r'[rR]"""(?:[^"]|"(?!""))*"""', String.Other),
            (r'[rR]"[^"\n]*"', String.Other),
            (r'"""', String.Heredoc, "block"),
            (r'"', String.Double, "line"),
        ],
        "block": [
            (r'"""', String.Heredoc, "#pop"),
            include("text"),
            (r'(?:[^"\\$]|"(?!""))+', String.Heredoc),
            (r"[\\$]", String.Heredoc),
        ],
        "line": [
            (r'"', String.Double, "#pop"),
            # Not closed: the next line is code again.
            (r"(?=\n)", Text, "#pop"),
            include("text"),
            (r'[^"\\$\n]+', String.Double),
            (r"[\\$]", String.Double),
        ],
        "text": [
            (r"\$\{#[^}]*\}", Comment.Special),
            (r"\$\{", String.Interpol, "hole"),
            (r"\\(?:u\{[0-9a-fA-F]*\}|[^\n])", String.Escape),
        ],
        "hole": [
            (r"\}", String.Interpol, "#pop"),
            (r"\{", Punctuation, "braces"),
            include("code"),
            default("#pop"),
        ],
        "braces": [
            (r"\}", Punctuation, "#pop"),
            (r"\{", Punctuation, "#push"),
            include("code"),
            default("#pop"),
        ],
    }
