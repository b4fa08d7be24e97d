"""Registers, order and constraints of emitted programs."""

from pathlib import Path

import pytest

from lmc.backend.emit import emit
from lmc.backend.program import CodeBlock, FunctionCode, Instruction, Program, Register
from lmc.backend.program_text import format_program
from lmc.backend.serialize import read_program, write_program
from lmc.diagnostics import CompileError
from lmc.ir.reader import read_module
from lmc.ir.verifier import verify

EVERYTHING = (Path(__file__).parents[1] / "ir" / "everything.ir").read_text(encoding="utf-8")
DECLARED = "extern @log(q: str) -> none\npure extern @embed(q: str) -> int\n"


def emitted(text: str) -> Program:
    module = read_module(text)
    verify(module)
    return emit(module)


def block(body: str, params: str = "%s: str, %b: bool, %c: context, %xs: list<str>") -> CodeBlock:
    return emitted(f'module "m" {{\n{DECLARED}func @f({params}) -> str {{\n{body}\n}}\n}}').functions["f"].body


def after(body: str) -> list[tuple[int, ...]]:
    return [i.after for i in block(body).instructions]


def log(name: str, text: str = '"x"') -> str:
    return f'%{name}: none = extern.call({text})[name = "log"]\n'


def gen(name: str, context: str = "c", site: str = "0", type: str = "str") -> str:
    return f'%{name}_c: context, %{name}: {type} = lm.gen(%{context})[role = raw, site = "{site}"]\n'


END = "control.return(%s)"


def test_instructions_hold_operands_and_attributes():
    body = block('%t: str = text.concat("a", %s, 2.0)\n%d: context = context.append(%c, %t)[role = user]\n'
                 '%e: context, %v: str = lm.gen(%d, stop = "x", max_tokens = 5)[role = assistant, site = "0", follow = "."]\n' + END)
    assert body.params == (0, 1, 2, 3)
    concat, append, generate, end = body.instructions
    assert concat.inputs == {"pieces": ("a", Register(0), 2.0)} and concat.outputs == (4,) and concat.reads == (0,)
    assert append.inputs == {"context": Register(2), "text": Register(4)} and append.attributes == {"role": "user", "deferred": False}
    assert generate.inputs == {"context": Register(5), "stop": "x", "max_tokens": 5} and generate.outputs == (6, 7)
    assert generate.attributes["follow"] == "." and generate.attributes["site"] == "0" and "constraint" not in generate.attributes
    assert [str(t) for t in generate.types] == ["context", "str"]
    assert end.inputs == {"values": (Register(0),)} and end.after == (0, 1, 2)


def test_regions_see_and_report_what_they_capture():
    body = block('%t: str = text.concat(%s)\n%r: list<str> = lm.fork(%c, %xs)[site = "0"] {\n^(%k: context, %d: str):\n'
                 '%u: str = text.concat(%t, %d)\ncontrol.yield(%u)\n}\n' + END)
    fork = body.instructions[1]
    assert fork.reads == (2, 3, 4) and fork.blocks[0].params == (5, 6)
    assert fork.blocks[0].instructions[0].reads == (4, 6) and fork.outputs == (8,)


def test_generations_are_not_ordered():
    assert after(gen("x") + gen("y", site="1") + END) == [(), (), (0, 1)]


def test_host_effects_keep_their_order():
    assert after(log("k") + gen("x") + log("l") + log("m") + END) == [(), (), (0,), (2,), (0, 1, 2, 3)]


def test_pure_externs_are_ordered_by_data_only():
    pure = '%n: int = extern.call("x")[name = "embed", pure = true]\n'
    assert after(pure + pure.replace("%n", "%m") + END) == [(), (), (0, 1)]


def test_a_host_effect_does_not_run_past_a_check():
    check = "control.assert(%b)\n"
    index = '%i: str = pure.call(%xs, 0)[function = "index"]\n'
    assert after(check + gen("x") + index + log("a") + END) == [(), (), (), (0, 2), (0, 1, 2, 3)]
    # A text has been made from the checked value: the register says so already.
    assert after(index + log("a", "%i") + END) == [(), (), (0, 1)]


def test_what_may_leave_waits_for_all_and_all_wait_for_it():
    leave = "control.if(%b) {\ncontrol.return(%s)\n} {\ncontrol.yield()\n}\n"
    assert after(gen("x") + leave + gen("y", site="1") + log("a") + END) == [(), (0,), (1,), (1,), (1, 2, 3)]
    assert after(leave + leave + END) == [(), (0,), (1,)]


def test_an_assert_orders_no_generation():
    assert after("control.assert(%b)\n" + gen("x") + END) == [(), (), (0, 1)]


def test_effects_are_counted_through_regions_and_calls():
    program = emitted(f'''module "m" {{
{DECLARED}
func @h(%s: str) -> none {{
{log("a", "%s")}control.return(%a)
}}
func @f(%s: str, %xs: list<str>) -> none {{
control.for(%xs)[site = "0"] {{
^(%x: str):
%i: none = call(%x)[callee = "h", site = "1"]
control.yield()
}}
%j: none = call(%s)[callee = "h", site = "2"]
control.return(%j)
}}
func @q(%s: str) -> str {{
control.return(%s)
}}
}}''')
    assert program.functions["f"].body.instructions[1].after == (0,)
    assert {n: f.host_effects for n, f in program.functions.items()} == {"h": True, "f": True, "q": False}


def test_order_edges_stay_linear():
    leave = "control.if(%b) {\ncontrol.return(%s)\n} {\ncontrol.yield()\n}\n"
    body = "".join(leave + log(f"a{i}") for i in range(300)) + END
    assert sum(map(len, after(body))) < 4 * 600


def test_constraints_are_built_once_each():
    body = block(gen("x", type="1..5") + gen("y", site="1", type="1..5") + gen("z", site="2", type='"A" | "B"')
                 + '%w_c: context, %w: str = lm.gen(%c)[role = raw, site = "3", regex = "[ab]+"]\n' + END)
    assert [i.attributes.get("constraint") for i in body.instructions[:4]] == [0, 0, 1, 2]
    program = emitted('module "m" { func @f(%c: context) -> int {\n' + gen("x", type="int") + "control.return(%x)\n} }")
    (dfa,) = program.constraints
    assert dfa.matches(b"-12") and not dfa.matches(b"1.5")


def test_what_has_no_automaton_is_an_error_each():
    with pytest.raises(CompileError) as caught:
        block(gen("x", type="context") + '%w_c: context, %w: str = lm.gen(%c)[role = raw, site = "3", regex = "(?=a)b"]\n'
              '%v_c: context, %v: str = lm.gen(%c)[role = raw, site = "4", schema = "{\\"$ref\\": \\"#\\"}"]\n' + END)
    assert [d.code for d in caught.value.diagnostics] == ["E0610"] * 3


def test_equal_automata_share_their_tables_and_keep_their_sources():
    program = emitted("""module "m" {
      func @f(%c: context) -> none {
        %x_c: context, %x: 1..5 = lm.gen(%c)[role = raw, site = "0"]
        %y_c: context, %y: str = lm.gen(%c)[role = raw, site = "1", regex = "[1-5]"]
        %z_c: context, %z: 1..5 = lm.gen(%c)[role = raw, site = "2"]
        %w_c: context, %w: str = lm.gen(%c)[role = raw, site = "3", regex = "[1-6]"]
        control.return(null)
      }
    }""")
    first, same, other = program.constraints
    assert first.table is same.table and (first.source, same.source) == ("1..5", "[1-5]") and other.table is not first.table
    assert [i.attributes["constraint"] for i in program.functions["f"].body.instructions[:-1]] == [0, 1, 0, 2]
    read = read_program(write_program(program), "m.lmpc").constraints
    assert [c.digest() for c in read] == [c.digest() for c in program.constraints]
    assert [c.source for c in read] == ["1..5", "[1-5]", "[1-6]"] and read[0].table is read[1].table


def test_the_host_does_not_wait_for_text_in_an_open_turn():
    """But for what may open a turn it does: that may fail."""
    open_turn = gen("x") + '%a: context = context.append(%x_c, "t")[role = raw]\n' + log("l") + END
    assert after(open_turn)[2] == ()
    new_turn = '%a: context = context.append(%c, "t")[role = raw]\n' + log("l") + END
    assert after(new_turn)[1] == (0,)


def _check(function: FunctionCode) -> None:
    def walk(code: CodeBlock, seen: set[int]) -> None:
        seen = seen | set(code.params)
        for index, i in enumerate(code.instructions):
            assert set(i.reads) <= seen and all(a < index for a in i.after), i
            for inner in i.blocks:
                walk(inner, seen)
            assert not set(i.outputs) & seen
            seen |= set(i.outputs)

    walk(function.body, set())


def test_everything_is_emitted_and_printed():
    program = emitted(EVERYTHING)
    for function in program.functions.values():
        _check(function)
    text = format_program(program)
    assert "lm.fork" in text and "test:two plus two" in text and f"{len(program.constraints) - 1}: " in text
    assert program.entries == ("main",) and program.tests == ("test:two plus two",)
    assert program.externs["lib.x.embed"].pure and program.config == {"model": "default", "temperature": 0.5}
    assert isinstance(program.functions["main"].body.instructions[0], Instruction)
