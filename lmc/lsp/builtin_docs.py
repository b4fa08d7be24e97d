"""One line about each built-in function and option, for hover and completion.

    FUNCTIONS["bullets"]  ->  "The texts as a list with `- ` before each."

What they take is in `lmc.parser.check.builtins` and `options`; a test compares the names.
"""

from __future__ import annotations

FUNCTIONS: dict[str, str] = {
    "gen": "Generates a value of a type, appends it to the conversation and gives it back.",
    "select": "Chooses one of several texts, or a value of a literal type, by its probability, and appends it.",
    "score": "The log-probability of each option; appends nothing.",
    "image": "Puts a picture into a `user:` turn, where the model has eyes.",
    "len": "How many characters, elements or entries there are.",
    "range": "The integers from `start` up to `stop`, without it.",
    "enumerate": "Each element with its index.",
    "zip": "The elements of several lists, side by side.",
    "min": "The smallest of a list or of the arguments.",
    "max": "The largest of a list or of the arguments.",
    "sum": "The sum of a list of numbers.",
    "sorted": "The list in order.",
    "abs": "The number without its sign.",
    "round": "The number rounded to so many digits.",
    "str": "The value as text.",
    "int": "The text or number as an integer; an error where it is none.",
    "float": "The text or number as a float; an error where it is none.",
    "bool": "Whether the value is true.",
    "print": "Writes to standard error, or to standard output where the function returns nothing.",
    "input": "Reads a line from the user.",
    "fail": "Stops with an error; never returns.",
    "json": "The value as compact JSON.",
    "parse_json": "Reads JSON as a value of a type; an error where it does not fit.",
    "bullets": "The texts as a list with `- ` before each.",
    "lines": "The texts, one a line.",
    "schema": "The JSON Schema of a type, as text.",
    "fields": "The names of a record's fields, as words: `a, b and c`.",
    "majority": "The value that occurs most often; the first of several.",
    "argmax": "The index of the largest number.",
    "top": "The `n` elements with the highest scores.",
    "findall": "All matches of a regex in a text.",
    "matches": "Whether the whole text matches a regex.",
}

OPTIONS: dict[str, str] = {
    "max_tokens": "At most so many tokens; 256 unless given.",
    "min_tokens": "At least so many tokens.",
    "stop": "Ends before this text, or the first of a list; it is not part of the value.",
    "temperature": "0 takes the most probable token; higher is more varied.",
    "top_p": "Draws among the most probable tokens that make up this share.",
    "top_k": "Draws among so many most probable tokens.",
    "min_p": "Leaves out tokens less probable than this share of the best one's.",
    "seed": "Makes the draw repeatable.",
    "frequency_penalty": "Against tokens, the more often they were written.",
    "presence_penalty": "Against tokens that were written already.",
    "repetition_penalty": "Divides the scores of tokens that occurred.",
    "logit_bias": "Added to the scores of tokens, by id.",
    "logprobs": "Records so many alternatives for each token.",
    "heal": "Reopens the last token before the generation, so that a word is not cut by it; on unless given.",
    "ignore_eos": "Goes on where the model would end.",
    "stream": "Shows the text while it is written.",
    "regex": "The whole text must match this regex.",
    "schema": "The text is JSON that fits this JSON Schema.",
    "grammar": "The text fits this Lark grammar.",
    "model": "The model that the program is made for.",
    "errors": '`"collect"` gives failed branches as `Error` values.',
}

ROLES: dict[str, str] = {
    "system": "A chat turn that tells the model who it is; stands first.",
    "user": "A chat turn of the user.",
    "assistant": "A chat turn of the model: what it generates stands here.",
    "raw": "Plain text without a chat template.",
}
