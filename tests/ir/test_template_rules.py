"""What the verifier says of a template that is none."""

import pytest

from lmc.diagnostics import LmcError
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify

GEN = "%a: context, %x: str = lm.gen(%t, stop = %s)[role = assistant, site = \"0\"]"
TEXT = '%b: context = context.append(%a, "and")[role = assistant]'
LAST = '%d: context, %y: str = lm.gen(%b)[role = assistant, site = "1"]'
END = "control.yield(%d, %x, %y)"


def template(*ops: str, results: str = "%c1: context, %v: str, %w: str") -> str:
    return "\n".join(['module "m" {', "func @f(%c: context, %s: str) -> none {", results + " = lm.template(%c) {", "^(%t: context):", *ops,
                      "}", "control.return(null)", "}", "}"])


def test_what_fits():
    verify(read_module(template(GEN, TEXT, LAST, END)))
    verify(read_module(template(GEN, '%text: str = text.concat("and ", %s)', TEXT.replace('"and"', "%text"), LAST, END)))


@pytest.mark.parametrize(("ops", "message"), [
    ((GEN, TEXT, LAST.replace("assistant", "raw"), END), "writes into turns of several roles"),
    ((GEN, TEXT, LAST.replace("%b", "%a"), END), "has ops that do not go on from the one before"),
    ((GEN, TEXT, LAST, "control.yield(%d, %y, %x)"), "does not yield its last context"),
    ((GEN, TEXT, LAST, "control.yield(%b, %x, %y)"), "does not yield its last context"),
    ((GEN, TEXT.replace('"and"', "%x"), LAST, END), "has a text or option that one of its own generations gives"),
    ((GEN, '%n: int = pure.call(%s)[function = "len"]', TEXT, LAST, END), "has more than texts and generations in it"),
    ((TEXT.replace("%a", "%t").replace("%b", "%a"), "control.yield(%a, %s, %s)"), "has no generation in it"),
    ((GEN, TEXT, "control.yield(%b, %x, %x)"), "does not go from a generation to a generation"),
])
def test_what_does_not(ops, message):
    with pytest.raises(LmcError) as caught:
        verify(read_module(template(*ops)))
    assert message in str(caught.value)


@pytest.mark.parametrize(("head", "message"), [
    ('automaton regex "(?=a)b"', "no automaton can be made of it"),
    ('automaton words "a"', "there is no constraint of the kind `words`"),
    ('automaton type "@Nobody"', "no automaton can be made of it"),
])
def test_automata_that_cannot_be_made(head, message):
    with pytest.raises(LmcError) as caught:
        read_module(f'module "m" {{\n{head}\n}}')
    assert caught.value.diagnostics[0].code == "E0902" and message in str(caught.value)


def test_a_number_without_an_automaton():
    module = 'module "m" {\nfunc @f(%c: context) -> none {\n%d: context, %x: int = lm.gen(%c)[role = raw, site = "0", automaton = 0]\n' \
             "control.return(null)\n}\n}"
    with pytest.raises(LmcError) as caught:
        verify(read_module(module))
    assert "there is no automaton 0" in str(caught.value)
