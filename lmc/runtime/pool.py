"""The slots for keys and values, and which of them are free.

A slot holds one token.  Slots are handed out in runs where possible, because attention reads a run up to twice as fast as scattered
slots; but `n` free slots always satisfy a demand for `n`, however scattered they are.

    free:  [0, 100)                allocate(40, room=20)   -> 40 … 79      the end of the longest run, but for the room to grow into
    free:  [0, 40) [80, 100)       allocate(10, room=20)   -> 10 … 19      the next one leaves that room alone
    free:  [0, 10) [20, 40) [80, 100)   allocate(1, after=79)   -> 80      the run goes on

Nothing is reserved: room is where nobody else is put while there are longer runs.  The pool knows neither requests nor the tree: a
slot that is not free is someone else's business.
"""

from __future__ import annotations

import heapq

# What a request gets at most to grow into: few texts are longer, and a run of so many is read as fast as any.  Memory comes from the
# system by huge pages, each of which holds thousands of slots of one layer and head, and to clear them takes longer than a step:
# requests that lie close together touch fewer.
_ROOM = 256


class KvPool:
    """Free slots as a set of maximal runs.  Slots are numbered `0 … size - 1`."""

    __slots__ = ("size", "free_count", "_taken", "_length", "_start", "_longest", "_new")

    def __init__(self, size: int):
        assert size > 0, size
        self.size = size
        self.free_count = size
        self._taken = bytearray(size)  # catches a slot that is given back twice
        self._length = {0: size}  # first slot of a free run -> how many
        self._start = {size: 0}  # slot behind a free run -> its first slot
        self._longest = [(-size, 0)]  # heap of runs, longest first; stale entries are skipped when they come up
        self._new: set[int] = set()  # first slots of runs that are not in the heap yet: while a run is decoded into, none need be

    def allocate(self, count: int, *, after: int | None = None, room: int = _ROOM) -> list[int] | None:
        """`count` slots, the first one next to slot `after` where that is free; None if fewer are free.

        room: how many more, at the most, are going to be asked for behind them."""
        if count > self.free_count:
            return None
        slots: list[int] = []
        if after is not None and after + 1 in self._length:
            slots += self._take(after + 1, after + 1, count)
        room = min(room, _ROOM)
        while len(slots) < count:
            start, length = self._longest_run()
            slots += self._take(start, start + _place(length, count - len(slots), room), count - len(slots))
        self.free_count -= count
        return slots

    def free(self, slots: list[int]) -> None:
        """Give slots back.  Each must have been handed out."""
        run_start = run_end = -1
        for slot in slots:
            assert self._taken[slot], f"slot {slot} is free already"
            self._taken[slot] = 0
            if slot != run_end:
                if run_end > run_start:
                    self._give(run_start, run_end)
                run_start = slot
            run_end = slot + 1
        if run_end > run_start:
            self._give(run_start, run_end)
        self.free_count += len(slots)

    def free_slots(self) -> set[int]:
        """All free slots, for checks in tests."""
        return {slot for start, length in self._length.items() for slot in range(start, start + length)}

    def _take(self, start: int, first: int, count: int) -> range:
        """Up to `count` slots from `first` on, out of the run that begins at `start`."""
        length = self._length.pop(start)
        end = start + length
        last = min(first + count, end)
        self._new.discard(start)
        if first > start:
            self._add(start, first)
        if end > last:
            self._add(last, end)
        else:
            del self._start[end]
        assert self._taken.find(1, first, last) < 0, f"one of the slots {first} … {last - 1} was handed out twice"
        self._taken[first:last] = bytes([1]) * (last - first)
        return range(first, last)

    def _give(self, start: int, end: int) -> None:
        """Add the run `start … end - 1`, joined with its free neighbours."""
        before = self._start.pop(start, None)
        if before is not None:
            del self._length[before]
            self._new.discard(before)
            start = before
        behind = self._length.pop(end, None)
        if behind is not None:
            del self._start[end + behind]
            self._new.discard(end)
            end += behind
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        self._length[start] = end - start
        self._start[end] = start
        self._new.add(start)

    def _longest_run(self) -> tuple[int, int]:
        for start in self._new:
            heapq.heappush(self._longest, (-self._length[start], start))
        self._new.clear()
        # Most entries are stale after a while.
        if len(self._longest) > 4 * len(self._length) + 64:
            self._longest = [(-length, start) for start, length in self._length.items()]
            heapq.heapify(self._longest)
        while True:
            negative, start = self._longest[0]
            if self._length.get(start) == -negative:
                return start, -negative
            heapq.heappop(self._longest)


def _place(length: int, count: int, room: int) -> int:
    """Where in a run of `length` free slots `count` are put that have to grow by `room`: at its end but for the room.  In a shorter run
    a new one has half, because what is before it may grow into the other half; many slots begin the run, so that they are together."""
    if length >= count + room:
        return length - count - room
    return length // 2 if count == 1 else 0
