"""Plain models of the ordered index's parts, which drive a part and check what it shows."""

import random
from collections import deque
from typing import Any


class Slots:
    """Used slots: a tuple stored and one that expires in every cycle, often in the same word."""

    def __init__(self, occupancy: Any, rng: random.Random) -> None:
        self.dut, self.params, self.rng = occupancy, occupancy.params, rng
        self.used = [0] * self.params.buckets
        self.bits = [0] * self.params.buckets
        self.slots = [1 << k for k in range(self.params.bucket_slots)]

    def _all(self, used: bool) -> list[tuple[int, int]]:
        """Return all slots that are used, or are not."""
        words = range(self.params.buckets)
        return [(w, s) for w in words for s in self.slots if bool(self.used[w] & s) == used]

    def take(self, ctx: Any, near: list[int]) -> None:
        """Store a tuple, in one of some words if any is free, or none."""
        free = self._all(used=False)
        takes = bool(free) and self.rng.random() < 0.7
        ctx.set(self.dut.take, takes)
        if takes:
            word, slot = self.rng.choice([each for each in free if each[0] in near] or free)
            ctx.set(self.dut.position, {"word": word, "slot": slot})
            ctx.set(self.dut.bits, ~self.bits[word] & sum(self.slots))
            self.bits[word] ^= slot
            self.used[word] |= slot

    def free(self, ctx: Any, held: list[tuple[int, int]], near: list[int]) -> None:
        """Let one of those expire that are held, or none."""
        frees = bool(held) and self.rng.random() < 0.7
        ctx.set(self.dut.free, frees)
        if frees:
            word, slot = self.rng.choice([each for each in held if each[0] in near] or held)
            ctx.set(self.dut.freed, {"word": word, "slot": slot})
            ctx.set(self.dut.bit, bool(self.bits[word] & slot))
            self.used[word] &= ~slot

    async def run(self, ctx: Any, cycles: int) -> None:
        """Look at random words, every other time at those of the cycle before."""
        params, dut = self.params, self.dut
        rows, banks = params.buckets // params.ways, range(params.ways)
        reads, into = [0] * params.ways, [0] * params.ways
        for step in range(cycles):
            if step % 2:
                reads, into = ([self.rng.randrange(rows) for _ in banks] for _ in (0, 1))
            words = [row * params.ways + bank for bank, row in enumerate(reads)]
            others = [row * params.ways + bank for bank, row in enumerate(into)]
            ctx.set(dut.rows, reads)
            ctx.set(dut.into, into)
            shown, into_shown = ([self.used[w] for w in each] for each in (words, others))
            held, entered = self._all(used=True), [self.bits[word] for word in others]
            self.take(ctx, others)
            self.free(ctx, held, words)
            await ctx.tick()
            assert [ctx.get(dut.used[bank]) for bank in banks] == shown
            assert [ctx.get(dut.taken[bank]) for bank in banks] == into_shown
            assert [ctx.get(dut.entered[bank]) for bank in banks] == entered

    async def sweep(self, ctx: Any) -> None:
        """Empty all words, and look at each."""
        params, dut = self.params, self.dut
        ctx.set(dut.take, 0)
        ctx.set(dut.free, 0)
        ctx.set(dut.sweep, 1)
        for row in range(params.buckets // params.ways):
            ctx.set(dut.swept, row)
            await ctx.tick()
        ctx.set(dut.sweep, 0)
        for row in range(params.buckets // params.ways):
            ctx.set(dut.rows, [row] * params.ways)
            await ctx.tick()
            assert not any(ctx.get(dut.used[bank]) for bank in range(params.ways))


def with_end(errand: dict[str, int], buckets: int) -> dict[str, int]:
    """Return an errand with the last of the words that it looks at."""
    return {**errand, "until": (errand["word"] + errand["extent"]) % buckets}


class Errands:
    """Random errands of an index, one behind the other; what it shows to each search."""

    def __init__(self, half: Any, rng: random.Random, window: int) -> None:
        self.dut, self.params, self.rng, self.window = half, half.params, rng, window
        self.waiting: deque[dict[str, int]] = deque()
        self.shown: list[int] = []
        self.held: deque[tuple[int, int]] = deque()  # bucket, payload
        self.stored = self.joined = self.full = 0

    def put(self, ctx: Any, busy: float, hot: int | None) -> None:
        """Add an errand, or none."""
        self.full += len(self.waiting) == self.dut.depth
        puts = len(self.waiting) < self.dut.depth and self.rng.random() < busy
        ctx.set(self.dut.put, puts)
        if puts:
            is_hot = hot is not None and self.rng.random() < 0.9
            errand = {
                "stores": self.rng.random() < 0.5,
                "looks": self.rng.random() < 0.9,
                "word": hot if is_hot and hot is not None else self._bucket(),
                "extent": self.rng.choice([0, 0, 1, 6, self.params.buckets - 1]),
            }
            ctx.set(self.dut.errand, with_end(errand, self.params.buckets))
            self.waiting.append(errand)

    def _bucket(self) -> int:
        return self.rng.randrange(self.params.buckets)

    async def run(self, ctx: Any, cycles: int) -> None:
        """Run errands, in phases in which nearly all tuples are of one bucket, or of any."""
        dut, rng = self.dut, self.rng
        hot, busy = None, 0.9
        for step in range(cycles):
            if step % 150 == 0:
                hot, busy = rng.choice([None, self._bucket()]), rng.choice([0.1, 0.9])
            ctx.set(dut.hold, rng.random() < 0.1)
            ctx.set(dut.wait, step % 1000 >= 900 or rng.random() < 0.1)
            ctx.set(dut.enter.payload, self.stored % 1024)
            ctx.set(dut.full, self.stored >= self.window)
            done = [ctx.get(each) for each in (dut.scan, dut.searched, dut.stored)]
            self.put(ctx, busy, hot)
            await ctx.tick()
            assert ctx.get(dut.held) == len(self.held)
            self._done(ctx, *done)

    def _done(self, ctx: Any, scans: int, searched: int, stores: int) -> None:
        """Take what was shown, and carry out what the index has carried out."""
        if scans:
            live = ctx.get(self.dut.live)
            lanes = [lane for lane in range(self.params.lanes) if live >> lane & 1]
            self.shown += [ctx.get(self.dut.tuples[lane]).payload for lane in lanes]
        if searched:
            self._check(self.waiting.popleft())
            self.shown.clear()
        if stores:
            errand = self.waiting.popleft()
            assert errand["stores"], "a search is passed over"
            self.joined += searched
            if self.stored >= self.window:
                self.held.popleft()
            self.held.append((errand["word"], self.stored % 1024))
            self.stored += 1

    def _check(self, search: dict[str, int]) -> None:
        """Check what a search was shown."""
        assert not search["stores"], "a tuple is not stored in its turn"
        assert len(self.shown) == len(set(self.shown)), "a tuple is shown twice"
        in_window = {payload for _, payload in self.held}
        assert set(self.shown) <= in_window, "an expired tuple is shown"
        first, extent = search["word"], search["extent"]
        near = [(b - first) % self.params.buckets <= extent for b, _ in self.held]
        asked = {p for (_, p), is_near in zip(self.held, near, strict=True) if is_near}
        assert not search["looks"] or asked <= set(self.shown), "a tuple is missing"


class Expiry:
    """Tuples of a window in the order in which they expire, by count and by time."""

    def __init__(self, ages: Any, rng: random.Random, window: int, length: int) -> None:
        self.dut, self.rng, self.window, self.length = ages, rng, window, length
        self.held: deque[tuple[dict[str, int], int, int]] = deque()  # position, end, round
        self.now = self.latest = self.arrived = self.left = 0
        self.evicted = self.seen = self.late = self.turned = 0

    async def run(self, ctx: Any, cycles: int) -> None:
        """Let tuples arrive at random, with pauses of the time."""
        dut, rng, held = self.dut, self.rng, 0
        for step in range(cycles):
            self.now += rng.choice([0, 0, 0, 1, 4]) if step % 400 < 300 else 0
            full = self.arrived >= self.window
            position = {"word": rng.randrange(8), "slot": 1 << rng.randrange(2)}
            ctx.set(dut.full, full)
            arrives = rng.random() < (0.7 if step % 100 < 60 else 0.3) and not ctx.get(dut.blocked)
            ctx.set(dut.now, self.now)
            ctx.set(dut.end, self.now + self.length)
            ctx.set(dut.arrive, arrives)
            ctx.set(dut.position, position)
            ctx.set(dut.bit, self.arrived & 1)
            turns = bool(ctx.get(dut.over)) and not arrives and rng.random() < 0.5
            ctx.set(dut.turn, turns)
            self.turned += turns
            assert ctx.get(dut.held) == held
            held = len(self.held)
            assert all((ctx.get(dut.round) - each[2]) % 8 <= 1 for each in self.held)
            self._expire(ctx, arrives and full and self.left == self.arrived - self.window)
            if arrives:
                self.held.append((position, self.now + self.length, ctx.get(dut.round)))
                self.arrived, self.latest = self.arrived + 1, self.now
            await ctx.tick()
            self.seen += ctx.get(dut.evicted)

    def _expire(self, ctx: Any, leaves: bool) -> None:
        """Check who expires: the oldest of a full count window, or one whose time is over."""
        frees = bool(ctx.get(self.dut.free))
        assert frees or not leaves, "a tuple stays in a full window"
        if frees:
            oldest, end, _ = self.held.popleft()
            shown = ctx.get(self.dut.freed)
            assert (shown.word, shown.slot) == (oldest["word"], oldest["slot"])
            assert ctx.get(self.dut.freed_bit) == self.left & 1
            assert leaves or end <= self.latest, "a tuple expires before its time"
            self.evicted += leaves and end > self.now
            self.left += 1
        is_late = bool(self.held) and self.held[0][1] <= self.latest and not frees
        self.late = self.late + 1 if is_late else 0
        assert self.late < 8, "a tuple stays when its time is over"


class Plans:
    """Errands that wait and how far they read, while spreads change and all begins anew."""

    def __init__(self, planner: Any, rng: random.Random) -> None:
        self.dut, self.params, self.rng = planner, planner.params, rng
        self.inside: deque[dict[str, int]] = deque()
        # The round, how far in it and in the one before, and where the last one was displaced to.
        self.spreads = dict.fromkeys(range(self.params.buckets), (0, 0, 0, 0))
        self.begun = self.shown = self.stale = self.full = self.now = 0

    async def run(self, ctx: Any, cycles: int) -> None:
        """Take none, one or two in a cycle, be done with them later."""
        dut, rng = self.dut, self.rng
        ctx.set(dut.sweep, 1)
        for row in range(self.params.buckets // self.params.ways):
            ctx.set(dut.swept, row)
            await ctx.tick()
        ctx.set(dut.sweep, 0)
        turns = False
        for step in range(cycles):
            ctx.set(dut.round, self.now)
            raises = turns or rng.random() < 0.07
            is_slow = step % 600 < 100
            seen, stale = self._look(ctx)
            takes = 0 if raises else min(rng.choice([0, 0, 1, 2]), seen, 0 if is_slow else 2)
            ctx.set(dut.take_first, takes == 1)
            ctx.set(dut.take_both, takes == 2)
            self.begun, self.shown = self.begun + takes, self.shown + takes
            # The last errand before a round ends may have raised a spread, too.
            turns = step % 97 == 96
            restarts = turns or (stale and not self.begun)
            ctx.set(dut.restart, restarts)
            done = 0 if restarts else min(rng.choice([0, 1, 2]), self.begun)
            ctx.set(dut.retired, done)
            self._put(ctx)
            spread = self._spread(ctx, raises)
            await ctx.tick()
            self.spreads |= spread
            for _ in range(done):
                self.inside.popleft()
            self.begun = 0 if restarts else self.begun - done
            if turns:
                self.now = (self.now + rng.choice([0, 1])) % 8
            self._touch(spread, restarts)

    def _touch(self, spread: dict[int, Any], restarts: bool) -> None:
        """Note for which errands a spread has been set since they came, or all began anew."""
        count = self.params.buckets
        for errand in self.inside:
            extent = 0 if errand["stores"] else errand["extent"]
            hit = any((bucket - errand["word"]) % count <= extent for bucket in spread)
            errand["hit"] = int(not restarts and (errand["hit"] or hit))

    def _put(self, ctx: Any) -> None:
        """Add an errand, or none."""
        self.full += len(self.inside) == self.dut.depth
        puts = len(self.inside) < self.dut.depth and self.rng.random() < 0.8
        ctx.set(self.dut.put, puts)
        if puts:
            errand = {
                "stores": self.rng.random() < 0.4,
                "looks": self.rng.random() < 0.8,
                "word": self.rng.randrange(self.params.buckets),
                "extent": self.rng.choice(
                    [0, 0, 1, 5, 14, self.rng.randrange(self.params.buckets)]
                ),
            }
            ctx.set(self.dut.errand, with_end(errand, self.params.buckets))
            self.inside.append({**errand, "hit": 0})

    def _spread(self, ctx: Any, raises: bool) -> dict[int, Any]:
        """Set a bucket's spread, or none."""
        rng, dut = self.rng, self.dut
        ctx.set(dut.stretch, raises)
        ctx.set(dut.raised, raises)
        if not raises:
            return {}
        furthest = self.params.buckets
        # Often a bucket of an errand that has not begun.
        waiting = list(self.inside)[self.begun :] or [{"word": 0, "extent": 0}]
        near = rng.choice(waiting)
        bucket = (near["word"] + rng.randint(0, near["extent"] // 2)) % furthest
        at = rng.choice([self.now, (self.now - 1) % 8, (self.now - 2) % 8])
        now, before, latest = (rng.choice([0, 3, 20, rng.randrange(furthest)]) for _ in range(3))
        ctx.set(dut.bucket, bucket)
        ctx.set(dut.spread, {"round": at, "now": now, "before": before, "latest": latest})
        return {bucket: (at, now, before, latest)}

    def _look(self, ctx: Any) -> tuple[int, bool]:
        """Check the errands that are shown; return how many may begin, and if the next is stale."""
        dut = self.dut
        has = [ctx.get(dut.has_first), ctx.get(dut.has_second)]
        assert has != [0, 1]
        for number, view in enumerate([dut.first, dut.second][: sum(has)]):
            errand, shown = self.inside[self.begun + number], ctx.get(view)
            seen = {name: getattr(shown, name) for name in ("stores", "looks", "word")}
            expected = {name: int(errand[name]) for name in seen}
            assert seen == expected, "errands are not shown in order"
            if shown.stale:
                assert errand["hit"], "an errand is stale that no spread has changed for"
                self.stale += 1
                return number, number == 0
            if errand["stores"]:
                self._check_start(errand["word"], shown)
            elif errand["looks"]:
                self._check_rows(errand, shown)
        return sum(has), False

    def _known(self, bucket: int) -> tuple[int, int]:
        """Return how far the tuples of this round lie, and of the one before."""
        at, now, before, _ = self.spreads[bucket]
        is_last = at == (self.now - 1) % 8
        return (now, before) if at == self.now else (0, now if is_last else 0)

    def _check_start(self, word: int, shown: Any) -> None:
        """Check where a slot is searched."""
        at, _, _, latest = self.spreads[word]
        row = latest & ~(self.params.ways - 1)
        hint = row if row > self.params.ways else 0
        start = hint if at == self.now else 0
        assert (shown.start, shown.hint) == (start, hint)
        assert shown.at == (word + start) % self.params.buckets
        now, before = self._known(word)
        assert (shown.now, shown.before) == (max(now, before - before // 4), before)

    def _check_rows(self, errand: dict[str, int], shown: Any) -> None:
        """Check how many rows are read."""
        count = self.params.buckets
        ends = [
            min(bucket + max(self._known((errand["word"] + bucket) % count)), count - 1)
            for bucket in range(errand["extent"] + 1)
        ]
        assert shown.rows == max(ends) // self.params.ways, "an errand reads too little or too much"
