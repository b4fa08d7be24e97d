"""How long compiling takes, by length of the program and level, and where the time goes.

    python benchmarks/compile_time.py [--lines N,N,…] [--repeat N] [--passes]

    program                 lines       -O0       -O1       -O2   -O2 per 1,000 lines
    many functions            100      0.05      0.06      0.07                  0.70
    one long function       1,000      …

Two shapes: many functions that use one another, and one function that goes on and on.  Processor seconds of this process, from text to
program, the least of the repeats: neighbours on the machine only add.  `--passes` lists the parts of the longest -O2 compile.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from lmc.backend.emit import emit
from lmc.compiler import check_file, compile_file, lower_program
from lmc.passes import passes_of, run_passes

TYPE = '''
type Note{n}:
    score: 1..5
    reason: str(max_len={length})
'''

FUNCTION = '''
part ask{n}(question: str) -> str:
    user: "${{question}}"
    assistant: answer = gen(max_tokens=20, stop="\\n")
    return answer

def judge{n}(essay: str, dimensions: list[str]) -> list[Note{t}]:
    system: "You are a strict judge. Your number is {n}."
    user: """
        Here is an essay.
        ${{essay}}
        """
    first = ask{n}("What is it about, in a word?")
    fork d in dimensions:
        user: "You said ${{first}}. Judge its ${{d}} as JSON with ${{fields(Note{t})}}."
        assistant: note = gen(Note{t}, max_tokens=200)
    join note as notes
    good = [x for x in notes if x.score > 3]
    if len(good) == 0:
        print("none of ${{len(notes)}}")
    return good

def all{n}(essays: list[str]) -> list[int]:
    counts: list[int] = []
    for essay in essays:
        counts += [len(judge{n}(essay, ["clarity", "evidence"]))]
    return counts
'''

STEP = '''
    user: "Step {n}: what follows from ${{last}}?"
    assistant:
        "It is ${{a{n} := gen(max_tokens=20, stop="\\n")}}\\n"
        "Rating: ${{r{n} := gen(1..5)}}"
    if r{n} > 3:
        last = a{n}
    else:
        last = "${{last}}, ${{a{n}}}"
    total += r{n}
'''


#: So many functions share a record type: the automaton of one takes as long as a hundred lines of code.
SHARING = 5


def many_functions(lines: int) -> str:
    count = max(1, round(lines / (FUNCTION.count("\n") + TYPE.count("\n") / SHARING)))
    types = "".join(TYPE.format(n=n, length=20 + n % 40) for n in range(1 + (count - 1) // SHARING))
    return types + "".join(FUNCTION.format(n=n, t=n // SHARING) for n in range(count))


def one_long_function(lines: int) -> str:
    head = 'def main(question: str) -> str:\n    system: "You are brief."\n    last = question\n    total = 0\n'
    steps = "".join(STEP.format(n=n) for n in range(max(1, round(lines / STEP.count("\n")))))
    return head + steps + '    return "${last} ${total}"\n'


SHAPES: dict[str, Callable[[int], str]] = {"many functions": many_functions, "one long function": one_long_function}


def seconds(text: str, level: int, repeat: int) -> float:
    """Processor seconds of compiling a program, the least of the repeats."""
    return min(_timed(lambda: compile_file("program.lmp", level=level, read=lambda path: text)) for _ in range(repeat))


def parts(text: str) -> list[tuple[str, float]]:
    """Each part of an -O2 compile with its processor seconds; a pass is timed with the verifier behind it."""
    found: list[tuple[str, float]] = []

    def timed(name: str, part: Callable):
        start = time.process_time()
        result = part()
        found.append((name, time.process_time() - start))
        return result

    checked = timed("parse and check", lambda: check_file("program.lmp", read=lambda path: text))
    module = timed("lower and verify", lambda: lower_program(checked))
    for name in passes_of(2):
        module = timed(name, lambda: run_passes(module, (name,)))
    timed("emit", lambda: emit(module))
    return found


def _timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", default="100,1000,10000", metavar="N,N,…")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--passes", action="store_true")
    given = parser.parse_args()
    sizes = [int(n) for n in given.lines.split(",")]
    print(f"{'program':<20}{'lines':>8}{'-O0':>9}{'-O1':>9}{'-O2':>9}{'-O2 per 1,000 lines':>22}")
    for name, shape in SHAPES.items():
        for size in sizes:
            text = shape(size)
            times = [seconds(text, level, given.repeat) for level in (0, 1, 2)]
            length = text.count("\n")
            print(f"{name:<20}{length:>8,}" + "".join(f"{t:>9.2f}" for t in times) + f"{times[2] * 1000 / length:>22.2f}")
        if given.passes:
            for part, took in parts(text):
                print(f"    {part:<24}{took:>9.3f}")


if __name__ == "__main__":
    main()
