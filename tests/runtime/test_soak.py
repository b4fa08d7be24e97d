"""A minute of the soak (`python -m tests.runtime.soak` runs it for as long as you like), and that it would find a leak."""

import asyncio

from tests.runtime.soak import Soaked, soak


def test_a_minute_leaves_nothing_behind():
    soaked = asyncio.run(soak(60, seed=3))
    assert soaked.faults == []
    assert soaked.rounds > 10 and soaked.looked > 100
    assert soaked.ends["value"] and soaked.ends["cancelled"] + soaked.ends["model"], "all went well: the soak shows nothing"


def test_what_is_left_and_what_grows_is_told():
    grown = Soaked(resident=[100 << 20] * 8 + [200 << 20] * 8, left={"slots": 3, "requests": 0})
    grown.ends["internal"] = 2
    assert grown.faults == ["3 slots left", "2 runs ended by a fault inside lmc", "memory grew by 100 MiB"]
    assert Soaked(resident=[90 << 20, 100 << 20, 105 << 20, 99 << 20]).faults == []
