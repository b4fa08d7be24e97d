"""Chains of definitions, each needing the next: as long as one likes, in any order, whatever they are."""

import pytest

from lmc.compiler import compile_file
from tests.parser.check.program import checked, codes

CHAINS = {
    "constants": ("A{i} = A{j} + 1\n", "A{i} = 1\n", "def main() -> int:\n    return A0\n"),
    "types": ("type T{i} = list[T{j}]\n", "type T{i} = int\n", "def main(x: T0):\n    print(len(x))\n"),
    "records": ("type T{i}:\n    a: T{j}\n", "type T{i}:\n    a: int\n", "def main(x: T0):\n    print(json(x.a))\n"),
    "parts": ("part p{i}():\n    p{j}()\n    p{j}()\n", 'part p{i}():\n    "x "\n', "def main():\n    raw: p0()\n"),
    "functions": ("def f{i}(n: int) -> int:\n    return f{j}(n)\n", "def f{i}(n: int) -> int:\n    return n\n",
                  "def main() -> int:\n    return f0(1)\n"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_long_chain_of_definitions(tmp_path, name):
    link, end, use = CHAINS[name]
    links = [link.format(i=i, j=i + 1) for i in range(250)] + [end.format(i=250)]
    assert codes(checked(tmp_path, "".join(links) + use)) == []
    assert codes(checked(tmp_path, use + "".join(reversed(links)))) == []


@pytest.mark.parametrize("name", ["constants", "types", "records"])
@pytest.mark.parametrize("length", [3, 200])
def test_a_circle_of_definitions_is_an_error_and_no_recursion_of_python(tmp_path, name, length):
    link, _, use = CHAINS[name]
    text = "".join(link.format(i=i, j=(i + 1) % length) for i in range(length)) + use
    found = checked(tmp_path, text)
    assert found.errors and all(d.span is not None for d in found.errors)
    assert len(found.errors) == 1, [d.code for d in found.errors]
    if length > 100:
        assert found.errors[0].code == "E0015"


def test_a_circle_of_parts_with_many_ways_through_it_is_checked_in_time(tmp_path):
    """Each part calls the next one twice: there are 2 ** 200 ways round."""
    link, _, use = CHAINS["parts"]
    text = "".join(link.format(i=i, j=(i + 1) % 200) for i in range(200)) + use
    assert codes(checked(tmp_path, text)) == ["E0409"]


@pytest.mark.parametrize("name", ["functions", "parts"])
def test_a_long_chain_of_functions_compiles(tmp_path, name):
    link, end, use = CHAINS[name]
    link = link.replace("    p{j}()\n    p{j}()\n", "    p{j}()\n")
    path = tmp_path / "main.lmp"
    path.write_text("".join(link.format(i=i, j=i + 1) for i in range(250)) + end.format(i=250) + use)
    assert "main" in compile_file(str(path)).program.functions
