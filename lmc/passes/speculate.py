"""For models behind an interface: several generations with known texts between them become one op, so that one answer may hold all.

Before:

    func @person(%c: context) -> str {
      %c_1: context, %name: str = lm.gen(%c, stop = "\\n", max_tokens = 20)[role = assistant, site = "0", follow = "\\n"]
      %c_2: context = context.append(%c_1, "\\nhome: ")[role = assistant]
      %c_3: context, %home: str = lm.gen(%c_2, stop = "\\n", max_tokens = 20)[role = assistant, site = "1"]
      control.return(%home)
    }

After:

    func @person(%c: context) -> str {
      %c_3: context, %name: str, %home: str = lm.speculate(%c) {
      ^(%t: context):
        %c_1: context, %name_1: str = lm.gen(%t, stop = "\\n", max_tokens = 20)[role = assistant, site = "0", follow = "\\n"]
        %c_2: context = context.append(%c_1, "\\nhome: ")[role = assistant]
        %c_3_1: context, %home_1: str = lm.gen(%c_2, stop = "\\n", max_tokens = 20)[role = assistant, site = "1"]
        control.yield(%c_3_1, %name_1, %home_1)
      }
      control.return(%home)
    }

Near miss, which does not change: without `stop` nothing says where the first value ends in a longer answer, at a temperature two
answers are not one, and what a constraint allows is not what the model would write on its own.

    func @person(%c: context) -> int {
      %c_1: context, %name: str = lm.gen(%c, max_tokens = 20)[role = assistant, site = "0", follow = "\\n"]
      %c_2: context = context.append(%c_1, "\\nhome: ")[role = assistant]
      %c_3: context, %home: str = lm.gen(%c_2, stop = "\\n", temperature = 0.7)[role = assistant, site = "1", follow = "\\n"]
      %c_4: context = context.append(%c_3, "\\ncountry: ")[role = assistant]
      %c_5: context, %country: str = lm.gen(%c_4, stop = "\\n")[role = assistant, site = "2", follow = "\\n"]
      %c_6: context = context.append(%c_5, "\\nage: ")[role = assistant]
      %c_7: context, %age: int = lm.gen(%c_6)[role = assistant, site = "3"]
      control.return(%age)
    }

The answer is held against the texts and stops when the program runs (`lmc/runtime/speculation.py`).
"""

from __future__ import annotations

from lmc.ir.constraints import constraint_of
from lmc.ir.core import Literal, Module
from lmc.ir.ops import Gen, Speculate
from lmc.passes.turn_runs import group_runs
from lmc.types import STR

#: Options with which an answer is more than its text, or another one each time.
_OTHERWISE = ("min_tokens", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "ignore_eos",
              "stream")


def speculate(module: Module) -> Module:
    """The module with runs of free generations of one turn as one op, for a target that is asked over the network."""
    return group_runs(module, Speculate, lambda before, after: before.stop is not None and _plain(before) and _plain(after))


def _plain(gen: Gen) -> bool:
    """Whether the value is what the model writes there on its own."""
    greedy = gen.temperature is None or isinstance(gen.temperature, Literal) and gen.temperature.value == 0
    return greedy and constraint_of(gen)[1] == STR and all(getattr(gen, name) is None for name in _OTHERWISE)
