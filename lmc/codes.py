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
    # E07 externs
    # E08 models and run time
    "E0801": "no model of this name",
    "E0802": "the model could not be fetched",
    "E0803": "checksum mismatch in a model file",
    "E0804": "a file of the model is missing",
    "E0805": "the model's tokenizer cannot be used",
    "E0806": "a model file cannot be read",
    "E0807": "the cache folder cannot be written",
    "E0808": "the model's chat template cannot be used",
    # E09 IR, artifacts, and what this version does not execute
    # W1 warnings
}
