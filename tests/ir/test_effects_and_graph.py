"""Effects through regions and calls; the dependence graph of a function."""

import pytest

from lmc.ir.core import Effect
from lmc.ir.effects import function_effects, op_effect
from lmc.ir.graph import critical_path, dependence_graph, independent, to_dot
from lmc.ir.reader import read_module

CALLS = '''module "m" {
  extern @log(q: str) -> none
  pure extern @embed(q: str) -> int

  func @even(%n: int) -> bool {
    %r: bool = call(%n)[callee = "odd", site = "0"]
    control.return(%r)
  }
  func @odd(%n: int) -> bool {
    %x: none = extern.call("x")[name = "log"]
    %r: bool = call(%n)[callee = "even", site = "0"]
    control.return(%r)
  }
  func @pure(%b: bool) -> int {
    %x: int = extern.call("x")[name = "embed", pure = true]
    control.if(%b) {
      control.return(%x)
    } {
      control.yield()
    }
    control.return(%x)
  }
  func @model() -> str {
    %c: context = context.new()
    %c_1: context, %v: str = lm.gen(%c)[role = raw, site = "0"]
    control.return(%v)
  }
  func @plain(%a: str) -> str {
    %t: str = text.concat(%a)
    control.return(%t)
  }
}
'''


def test_effects_go_through_calls_and_recursion():
    effects = function_effects(read_module(CALLS))
    assert effects["even"] == effects["odd"] == Effect.HOST | Effect.FAIL
    assert effects["pure"] == Effect.FAIL
    assert effects["model"] == Effect.MODEL | Effect.FAIL
    assert effects["plain"] == Effect.PURE


def test_a_call_does_not_leave_its_caller():
    module = read_module(CALLS)
    effects = function_effects(module)
    call = module.function("even").body.ops[0]
    assert op_effect(call, effects) == Effect.HOST | Effect.FAIL
    branch = module.function("pure").body.ops[1]
    assert op_effect(branch, effects) == Effect.EXIT


@pytest.mark.parametrize(("body", "leaves"), [
    ("control.break()", False), ("control.continue()", False), ("control.return(%n)", True), ('control.fail("x")', True),
])
def test_a_loop_keeps_its_breaks(body, leaves):
    module = read_module(f'''module "m" {{
  func @f(%n: int, %xs: list<int>, %b: bool) -> int {{
    control.for(%xs)[site = "0"] {{
    ^(%x: int):
      control.if(%b) {{
        {body}
      }} {{
        control.yield()
      }}
      control.yield()
    }}
    control.return(%n)
  }}
}}''')
    loop = module.functions[0].body.ops[0]
    assert (Effect.EXIT in op_effect(loop, {})) is leaves
    assert Effect.EXIT in op_effect(loop.body.ops[0], {})


GRAPH = '''module "m" {
  func @f(%s: str) -> str {
    %c: context = context.new()
    %a: context, %x: str = lm.gen(%c)[role = raw, site = "0"]
    %b: context, %y: str = lm.gen(%c)[role = raw, site = "1"]
    %d: context, %z: str = lm.gen(%a)[role = raw, site = "2"]
    %t: str = text.concat(%s, %z)
    control.return(%t)
  }
}
'''


def test_graph():
    graph = dependence_graph(read_module(GRAPH).functions[0])
    assert sorted(graph.edges) == [(0, 1), (0, 2), (1, 3), (3, 4), (4, 5)]
    assert independent(graph, 1, 2) and independent(graph, 2, 3) and not independent(graph, 1, 3)
    assert [n for n in critical_path(graph) if n in (1, 2, 3)] == [1, 3]
    dot = to_dot(graph)
    assert dot.startswith('digraph "f" {') and 'n1 -> n3 [label="%a"];' in dot and dot.count("lightyellow") == 3


def test_regions_depend_on_the_op_around():
    module = read_module(CALLS)
    graph = dependence_graph(module.function("pure"))
    assert graph.nodes[2]["parent"] == 1 and (1, 2) in graph.edges and (0, 2) in graph.edges
