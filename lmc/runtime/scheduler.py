"""Which requests run, and which tokens of them the next step computes.

There is no prefill phase and no decode phase: a request has `ids`, some of them are computed, and a step extends some requests by
some tokens within a budget.

    ids        you are a strict judge . Judge the clarity
    slots      |--- shared: in the tree ---|-- private --|
               |------- computed ----|-- planned --|  remaining

Running requests come first, one token each at least, so a decoding one waits for no more than a chunk.  Then waiting ones are
admitted, in the order of the policy (`admission.py`), and what is left of the budget goes to long prompts.

Tokens of a prompt enter the tree when they are planned, before they are computed: a layer writes all keys and values before it reads
any, so that a request behind the same prefix can be computed in the same step.  What a running request is about to compute, a waiting
one does not compute as well: it waits until it is in the tree (`_leader`).  As it holds nothing while it waits, nothing can hang if
the request ahead is cancelled.

Under memory pressure the youngest request is retracted: it goes back to the queue with what it has generated and a hold on its prompt,
which therefore is computed once; its generated tokens stay in the tree as long as there is room.  A request is admitted only if the
longest answer of all fits beside the prompts of all, so that holds are in nobody's way; where answers are longer than was said, they
are dropped.  One that was retracted three times is taken last.

The scheduler owns requests, pool and tree; it knows neither the model nor what is done with logits.
"""

from __future__ import annotations

from bisect import insort
from collections import deque

from lmc.runtime.admission import MAX_OVERTAKEN, Policy, in_order
from lmc.runtime.pool import KvPool
from lmc.runtime.radix import Node, RadixTree, common_length
from lmc.runtime.underway import Request, State

#: After so many retractions a request is retracted only if nothing else is left.
MAX_RETRACTIONS = 3
#: Where room must be made, it is made for so many tokens, and in a small pool for one part in so many: to cut one token off a leaf
#: takes as long as to cut many.
_EVICTED_AT_ONCE = 64
#: What running requests are going to ask for is kept free so many times over, as far as that is one part in so many of the pool, and as
#: much again where room must be made.  Who grows then finds a run to grow into; with less, texts come to lie in the gaps between others,
#: and leave such gaps: pieces of one or two slots are slow to find and to read.
_SPARE_TIMES, _SPARE_SHARE = 2, 32


class Scheduler:
    """`plan` a step, then `commit` each planned request (or `release` it).  Nothing else may happen between the two.

    `tree`: an empty one, where it should evict in another order than `RadixTree` does."""

    def __init__(self, slots: int, *, policy: Policy = Policy.LPM, max_batch_tokens: int = 512, cache: bool = True,
                 tree: RadixTree | None = None):
        assert max_batch_tokens > 0, max_batch_tokens
        self.pool = KvPool(slots)
        self.tree = tree or RadixTree()
        self.policy = policy
        self.max_batch_tokens = max_batch_tokens
        self.cache = cache
        self._evicted_at_once = max(1, min(_EVICTED_AT_ONCE, slots // _EVICTED_AT_ONCE))
        self._most_spare = slots // _SPARE_SHARE
        self._promised = 0  # slots that running requests are going to ask for
        self.running: list[Request] = []  # in order of admission
        self.waiting: list[Request] = []  # in order of their ids, so that equal prefixes are neighbours
        self.retractions = 0
        self._steps = 0
        self._admissions = 0
        self._fresh: list[tuple[Node, int]] = []  # what this plan put into the tree, each with the depth where it begins

    @property
    def in_use(self) -> int:
        """Slots that running requests hold, alone or in the tree."""
        return self.tree.locked_count + sum(len(r.slots) - r.shared for r in self.running)

    def submit(self, request: Request) -> None:
        """Queue a request.  It must fit into the pool when it runs alone."""
        assert len(request.ids) <= self.pool.size, (len(request.ids), self.pool.size)
        request.arrival = self._steps
        self._enqueue(request)

    def plan(self) -> list[Request]:
        """Choose the next step's tokens (`planned`) and give them slots.  Returns the requests that have some."""
        self._steps += 1
        self.tree.step = self._steps
        self._fresh.clear()
        self._promised = sum(r.ungrown for r in self.running)
        self._extend_running()
        left = self._admit(self.max_batch_tokens - sum(r.planned for r in self.running))
        self._add_drafts(self._top_up(left))
        return [r for r in self.running if r.planned]

    def commit(self, request: Request) -> None:
        """The planned tokens of `request` are computed."""
        request.computed += request.planned
        request.planned = 0
        request.passes += 1

    def cut(self, request: Request, length: int) -> None:
        """Forget the keys and values of the positions from `length` on: guesses that were wrong."""
        assert request.planned == 0 and request.shared <= length, (request.planned, request.shared, length)
        request.drafted = 0
        if request.computed > length:
            self.pool.free(request.slots[length:])
            del request.slots[length:]
            request.computed = length

    def go_on(self, request: Request, ids: list[int], keep: int) -> None:
        """The request goes on with `ids`, whose first `keep` are those that it has.  It stays where it is; what is computed of them
        stays too, and is in the tree for others, as when a request ends."""
        assert request.planned == 0, "tokens were planned behind a gap"
        waits = request.state is State.WAITING
        if waits:
            self.waiting.remove(request)
        elif self.cache:
            self._give_back(request, max(request.shared, min(keep, request.computed)))
        else:
            self.cut(request, min(keep, len(ids) - 1))
        request.ids, request.wanted, request.share_to, request.prompt = ids, len(ids) - 1, len(ids), len(ids)
        request.draft, request.drafted, request.hang = [], 0, None
        if waits:
            self._enqueue(request)
        else:
            self._adopt(request)
            request.cached, request.passes = request.computed, 0

    def release(self, request: Request, keep: int) -> None:
        """The one way out of a request, however it ended.  Keys and values of its first `keep` tokens stay in the tree."""
        if request.state is State.WAITING:
            self.waiting.remove(request)
            self._let_go(request)
        elif request.state is State.RUNNING:
            self.running.remove(request)
            self._give_back(request, min(keep, request.computed))
        request.state = State.FINISHED

    def abandon(self, requests: list[Request]) -> None:
        """Release all requests of a step that could not be computed, and forget what it put into the tree."""
        for request in requests:
            self.release(request, request.computed)
        for node, depth in reversed(self._fresh):
            self.pool.free(self.tree.drop(node, depth))
        self._fresh.clear()

    # Planning, in the order in which it happens.

    def _extend_running(self) -> None:
        """One token at least for each running request, and a chunk for those that have more."""
        protected = [r for r in self.running if r.retractions >= MAX_RETRACTIONS]
        order = deque([*protected, *(r for r in self.running if r.retractions < MAX_RETRACTIONS)] if protected else self.running)
        share = self.max_batch_tokens - len(order)
        assert share >= 0, "more requests run than a step may have tokens"
        if self.waiting:
            share //= 2  # long prompts leave half to those that wait; `_top_up` gives them what is not taken
        while order:
            request = order.popleft()
            if request.computed < request.wanted or request.node is None:
                self._adopt(request)
            while not (available := self._available()) and order:
                self._retract(order.pop())
            if not available and len(self.running) == 1:
                self._make_room(1)
                available = self._available()
            if not available:
                self._retract(request)
                return
            room = min(request.remaining, 1 + share, available)
            self._grow(request, room)
            share -= room - 1

    def _admit(self, left: int) -> int:
        """Start waiting requests while budget and memory last.  Returns the budget left."""
        if left <= 0 or not self.waiting:
            return left
        ahead = [r for r in self.running if r.prefilling]
        owed = sum(r.remaining + 1 for r in self.running)
        answer = max((r.most - len(r.ids) for r in self.running), default=0)
        answer = max([answer, *(r.most - r.prompt for r in self.waiting if r.node is not None)])
        if self.running and owed + 2 > self._available():
            return left  # not even one token fits: the queue need not be looked at
        behind = 0  # what those need that wait for a prefix on its way: whoever comes first must not evict it before they had it
        for request in self._order():
            if leader := self._leader(request, ahead):
                behind += len(request.ids) - common_length(leader.ids, request.ids, 0) + 1
                continue
            held = request.node
            self._adopt(request)
            # Room for the whole of it beside what running requests need for their prompts and next tokens, and for the longest answer;
            # alone it always fits.
            answer = max(answer, request.most - len(request.ids))
            if self.running and request.remaining + 1 + owed + answer + behind > self._available():
                self._hold(request) if held else self._give_back(request, request.computed)
                break
            self._start(request)
            self._make_room(request.remaining + 1)
            room = min(request.remaining, left, self._available())
            self._grow(request, room)
            left -= room
            owed += request.remaining + 1
            if request.prefilling:
                ahead.append(request)
            if self._note_overtaking(request) or left == 0:
                break
        return left

    def _top_up(self, left: int) -> int:
        """Plan more of long prompts.  Returns the budget left."""
        for request in self.running:
            if left > 0 and request.planned and request.prefilling:
                room = min(request.remaining, left, self._available())
                if room:
                    self._grow(request, room)
                    left -= room
        return left

    def _add_drafts(self, left: int) -> None:
        """Guesses come last: they take what budget and memory nothing else needs in this step."""
        for request in self.running:
            request.drafted = 0
            if request.draft and request.planned and request.remaining == 0:
                count = min(len(request.draft), left, self._available())
                if count > 0:
                    self._grow(request, count)
                    request.drafted = count
                    left -= count

    def _order(self) -> list[Request]:
        """Waiting requests in the order of admission."""
        # Only the longest prefix first needs to know what the tree has.
        matched = {r.ticket: self._matched(r) for r in self.waiting} if self.policy is Policy.LPM else {}
        return in_order(self.policy, self.waiting, matched)

    def _leader(self, request: Request, ahead: list[Request]) -> Request | None:
        """The running request that is about to compute the next tokens of this one too."""
        if not self.cache or not ahead:
            return None
        ids, matched = request.ids, self._matched(request)
        if matched >= request.wanted:
            return None
        return next((r for r in ahead if r.scheduled == matched and r.ids[matched] == ids[matched] and r.ids[:matched] == ids[:matched]),
                    None)

    def _matched(self, request: Request) -> int:
        """How many tokens of a waiting request the tree has; goes on from where the last look ended."""
        hang = request.hang if request.hang is not None and request.hang.alive else None
        length, request.hang = self.tree.match_length(request.ids, hang)
        return min(length, request.wanted)

    def _adopt(self, request: Request) -> None:
        """Take over what the tree has of the request's next tokens, its own or another's."""
        assert request.planned == 0, "tokens were planned behind a gap"
        node = request.node or self.tree.root
        if self.cache and request.computed < request.wanted and (request.node is None or node.children):
            node = self.tree.match(request.ids, request.wanted)
            if node.depth > request.computed:
                self.pool.free(request.slots[request.shared :])
                self._lock(request, node)
                request.slots = self.tree.path_slots(node)
                request.computed = request.shared = node.depth
        if request.node is None:
            self._lock(request, node if node.depth == request.computed else self.tree.root)

    def _start(self, request: Request) -> None:
        self.waiting.remove(request)
        self.running.append(request)
        self._admissions += 1
        request.state, request.admitted = State.RUNNING, self._admissions
        request.hang = None
        request.share_to = len(request.ids)
        self._promised += request.ungrown
        if request.cached is None:
            request.cached = request.computed

    def _grow(self, request: Request, count: int) -> None:
        """Plan `count` more tokens; there must be room."""
        spare = min(self._most_spare, _SPARE_TIMES * self._promised)
        short = count + spare - self.pool.free_count
        if short > 0 and self.tree.cached_count:
            self.pool.free(self.tree.evict(max(short + spare, self._evicted_at_once)))
        # The last token of an answer is not computed.
        room = max(0, request.most - 1 - request.scheduled - count)
        slots = self.pool.allocate(count, after=request.slots[-1] if request.slots else None, room=room)
        assert slots is not None, f"{count} slots were promised, {self.pool.free_count} are free"
        shared = request.prefilling and self.cache
        request.slots += slots
        request.planned += count
        # Of a prompt that only the whole of it may be found, no chunk goes into the tree alone.
        if shared and (self.tree.shares_parts or not request.prefilling):
            self._share(request, request.scheduled)

    def _share(self, request: Request, end: int) -> None:
        """Hand the slots of the positions before `end` over to the tree."""
        start = request.shared
        node, unused = self.tree.extend(request.node, request.ids[start:end], request.slots[start:end])
        self._fresh.append((node, start + len(unused)))
        self._lock(request, node)
        if unused:
            self.pool.free(unused)
            request.slots = self.tree.path_slots(node) + request.slots[end:]
        request.shared = end

    def _lock(self, request: Request, node: Node) -> None:
        self.tree.lock(node)
        if request.node is not None:
            self.tree.unlock(request.node)
        request.node = node

    def _note_overtaking(self, admitted: Request) -> bool:
        """Count an admission against all that arrived before; True if one of them must be next."""
        starving = False
        for request in self.waiting:
            if request.arrival < admitted.arrival:
                request.overtaken += 1
                starving |= request.overtaken == MAX_OVERTAKEN
        return starving

    def _retract(self, request: Request) -> None:
        assert request.planned == 0, "a request with planned tokens cannot be retracted"
        self.running.remove(request)
        self._hold(request)
        request.retractions += 1
        self.retractions += 1
        request.state = State.WAITING
        self._enqueue(request)

    def _hold(self, request: Request) -> None:
        """Let go of all but the prompt, as far as it is computed."""
        if not self.cache:
            self._give_back(request, request.computed)
            return
        depth = min(request.prompt, request.computed)
        if request.computed > request.shared:
            self._share(request, request.computed)
        self._lock(request, self.tree.at_depth(request.node, depth))
        request.slots = request.slots[:depth]
        request.computed = request.shared = depth

    def _let_go(self, request: Request) -> None:
        """Drop the hold of a waiting request."""
        if request.node is not None:
            self._give_back(request, request.computed)

    def _make_room(self, count: int) -> None:
        """Drop holds, the youngest first, until there is room for `count` tokens."""
        if self._available() < count:
            for request in sorted(self.waiting, key=lambda r: -r.admitted):
                self._let_go(request)
                if self._available() >= count:
                    break

    def _give_back(self, request: Request, keep: int) -> None:
        """Let go of all slots; those of the first `keep` tokens stay in the tree without a lock."""
        private = request.slots[request.shared :]
        if self.cache and keep > request.shared:
            count = keep - request.shared
            _, unused = self.tree.extend(request.node, request.ids[request.shared : keep], private[:count])
            private = unused + private[count:]
        self.pool.free(private)
        self.tree.unlock(request.node)
        if keep < request.shared:
            self.pool.free(self.tree.drop(request.node, keep))
        request.node = None
        request.slots = []
        request.shared = request.computed = request.planned = 0

    def _enqueue(self, request: Request) -> None:
        insort(self.waiting, request, key=lambda r: r.ids)

    def _available(self) -> int:
        return self.pool.free_count + self.tree.cached_count
