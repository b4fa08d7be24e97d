"""The options of the language and those that the IR can carry are the same, so that none is accepted and then does nothing."""

from lmc.ir.core import op_fields
from lmc.ir.ops import Gen
from lmc.parser.check.options import CONSTRAINTS, GEN, SAMPLING
from lmc.parser import words
from lmc.parser.check.builtins import BUILTINS, DICT_METHODS, STR_METHODS
from lmc.pure import PURE


def test_options_of_gen_are_those_of_the_op():
    op = {f.name for f in op_fields(Gen)} - {"context", "role", "site", "follow", "automaton", "chain"}
    assert set(GEN) == op
    assert set(SAMPLING).isdisjoint(CONSTRAINTS)


def test_builtins_are_the_reserved_functions():
    assert set(BUILTINS) == words.BUILTIN_FUNCTIONS | {"str", "int", "float", "bool"}


def test_what_is_pure_can_be_computed():
    asks = {"gen", "select", "score", "image", "print", "input", "fail", "schema", "fields"}
    assert set(BUILTINS) - asks <= set(PURE)
    assert set(STR_METHODS) | set(DICT_METHODS) <= set(PURE)
