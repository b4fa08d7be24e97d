"""How much a program is optimised: the numbers of `-O`, in one place for the compiler, the commands and `lmc.load`.

    -O0   as written
    -O1   what looks at one function at a time and costs next to nothing
    -O2   all: what looks through calls too, and what tells the engine which prompts come; the default

No level changes a result (docs/passes.md), so the default is the one that computes least.  Which pass runs at which level is
written in `lmc/passes/__init__.py`.
"""

LEVELS = (0, 1, 2)
DEFAULT_LEVEL = 2
