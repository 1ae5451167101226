"""A round of a live join by an engine's session: its results, and what is kept."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from streamjoin.engines.session import Arriving, Fits
from streamjoin.live.held import Held, Now, Progress, State
from streamjoin.live.ledger import Ledger
from streamjoin.live.matches import Matches
from streamjoin.live.payload import Payload, RowSource
from streamjoin.live.side import after
from streamjoin.live.undecided import Limits
from streamjoin.tuples import NO_ROW, Int64s, Pairs


def joined_kept(
    now: Now,
    ready: tuple[Held | None, Held | None],
    arriving: tuple[Arriving | None, Arriving | None],
    fits: Fits,
) -> tuple[Now, int]:
    """Join a round of an inner join; return what the join holds then, and the round's pairs."""
    (r_state, s_state), progress, stamped = now
    session, kept = progress.session, progress.kept
    assert session is not None
    assert kept is not None
    numbered, kept = session.join(kept, *arriving, fits)
    r_rows, s_rows = appended(r_state, ready[0]), appended(s_state, ready[1])
    pairs = len(numbered.r_rows)
    decided: deque[Matches] = deque()
    if pairs:
        named = numbered.named
        matches = Matches(
            "inner",
            (RowSource(r_rows, r_state.layout), RowSource(s_rows, s_state.layout)),
            (numbered.r_rows, numbered.s_rows),
            (named[0], named[1]),
            named[2],
            offsets=(numbered.base[0] - r_rows.start, numbered.base[1] - s_rows.start),
        )
        decided.append(matches)
    done = Progress(
        progress.rounds + 1,
        progress.pairs + pairs,
        (progress.digest + numbered.digest) % (1 << 64),
        progress.done_us,
        progress.last_us,
        decided,
        True,
        session,
        kept,
    )
    states = (
        after(r_state, ready[0], None, None, r_rows.since(kept.first[0])),
        after(s_state, ready[1], None, None, s_rows.since(kept.first[1])),
    )
    return Now(states, done, stamped), pairs


def settled_kept(
    now: Now,
    ready: tuple[Held | None, Held | None],
    arriving: tuple[Arriving | None, Arriving | None],
    fits: Fits,
    *,
    limits: Limits,
    ledger: Ledger,
) -> tuple[Now, int]:
    """As :func:`joined_kept`, for the other kinds of join; a round may have no arrivals."""
    states, progress, stamped = now
    session, kept = progress.session, progress.kept
    settled = progress.settled
    assert session is not None
    assert kept is not None
    assert settled is not None
    numbered = None
    if arriving != (None, None):
        numbered, kept = session.join(kept, *arriving, fits)
    joined, settled = ledger.settle(settled, ready, numbered, limits)
    rows = [appended(state, held) for state, held in zip(states, ready, strict=True)]
    sources = (RowSource(rows[0], states[0].layout), RowSource(rows[1], states[1].layout))
    positions = [
        np.where(serials == NO_ROW, NO_ROW, serials - each.start)
        for serials, each in zip(joined.serials, rows, strict=True)
    ]
    decided = deque(
        Matches(
            ledger.how,
            sources,
            (positions[0][part], positions[1][part]),
            (joined.named[0][part], joined.named[1][part]),
            joined.ts[part],
        )
        for part in _parts(joined.ts, fits.max_pairs)
    )
    digest = int(Pairs(*joined.named).digest, 16)
    done = Progress(
        progress.rounds + 1,
        progress.pairs + len(joined.ts),
        (progress.digest + digest) % (1 << 64),
        limits.done_us,
        max(progress.last_us, limits.reached_us),
        decided,
        True,
        session,
        kept,
        settled,
    )
    left = [
        after(state, held, None, None, each.since(settled.needed(side, kept.first[side])))
        for side, (state, held, each) in enumerate(zip(states, ready, rows, strict=True))
    ]
    return Now((left[0], left[1]), done, stamped), len(joined.ts)


def _parts(ts: Int64s, max_pairs: int | None) -> Iterator[slice]:
    step = max_pairs or len(ts) or 1
    for start in range(0, len(ts), step):
        yield slice(start, start + step)


def appended(state: State, held: Held | None) -> Payload:
    """Return the rows of a stream with those that are joined now."""
    payload = state.payload or Payload()
    if held is None:
        return payload
    return payload.with_rows(held.batch.table, len(held.ts), state.layout)
