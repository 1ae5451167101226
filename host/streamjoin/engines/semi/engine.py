"""MESHJOIN and SSBJ as engines: a job's R is written to a store, its S is the stream.

``prepare`` makes the store, outside of the measured time; engines that are compared share it. A
relation that is in a store already is read there. R is at rest: all its rows are there from the
beginning, whatever their arrival times.
"""

import weakref
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.encode import encode_stream_keys
from streamjoin.engines.job import Job
from streamjoin.engines.semi import cost
from streamjoin.errors import InputError, StoreError
from streamjoin.metrics import Meter, arrival_clock_us
from streamjoin.relations import KINDS, Store, write_store
from streamjoin.relations.catalog import MIN_ROW_BYTES
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.windows import TumblingWindow
from streamjoin_common.storage import TemporaryFolder

DEFAULT_SHARE = 0.1
"""Default memory budget for data at rest, as a share of R's bytes."""

MIN_DEFAULT_BYTES = 1 << 20
ENOUGH_BYTES = 1 << 20
"""Bytes of a budget beside those of the tuples."""

OF_A_COPY = frozenset({"store", "r_bytes", "kept_bytes"})
"""Knobs that control how R is written."""

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]

_KNOBS = (
    Knob("store", "arrow", "Kind of store that holds R.", choices=KINDS),
    Knob(
        "memory_kib",
        0,
        "Budget of tables and buffers, at most what all tuples need; 0: what the arrival rate "
        "needs, for data at rest a tenth of R, at least 1 MiB.",
    ),
    Knob("partition_rows", 0, "Rows of the disk buffer; 0: by the cost model.", 0, 1 << 24),
    Knob("r_bytes", 16, "Bytes of a row of R; filler beyond 16.", 16, 1 << 16),
    Knob(
        "kept_bytes",
        0,
        "Bytes of a row kept in memory; 0: what a result needs, key and row number (16).",
        0,
        1 << 16,
    ),
    Knob("s_bytes", 12, "Bytes of a stream tuple; filler beyond 12.", 12, 1 << 16),
    Knob("shed_beyond", 0, "Maximum waiting tuples; more are dropped; 0: no limit.", 0, 1 << 31),
    Knob("deadline_s", 10, "Maximum seconds for which the store may fail.", 1, 3600),
)


class _Relation:
    """An open store, closed when unreferenced; with its folder if it was written here."""

    def __init__(self, store: Store, folder: TemporaryFolder | None = None) -> None:
        self.store = store
        weakref.finalize(self, _drop, store, folder)


def _written(kind: str, keys: Uint64s, row_bytes: int, kept_bytes: int) -> _Relation:
    folder = TemporaryFolder("store")
    try:
        store = write_store(kind, folder.path, keys, row_bytes, kept_bytes)
    except BaseException:
        folder.remove()
        raise
    return _Relation(store, folder)


def _drop(store: Store, folder: TemporaryFolder | None) -> None:
    if folder is None:  # not made here
        store.close()
        return
    try:
        store.close()
        with suppress(StoreError):  # a lost server has nothing left to clean up
            store.discard()
    finally:
        folder.remove()


_relations: "weakref.WeakValueDictionary[tuple[Any, ...], _Relation]"
_relations = weakref.WeakValueDictionary()


def _relation(kind: str, keys: Uint64s, row_bytes: int, kept_bytes: int) -> _Relation:
    """Return the store of these keys; write it if there is none."""
    import hashlib

    digest = hashlib.blake2b(keys.tobytes(), digest_size=16).hexdigest()
    wanted = (kind, digest, row_bytes, kept_bytes)
    relation = _relations.get(wanted)
    if relation is None:
        relation = _relations[wanted] = _written(kind, keys, row_bytes, kept_bytes)
    return relation


class Prepared(NamedTuple):
    """What a run needs besides the job: R's open store, and the keys of S."""

    relation: _Relation
    s_keys: Uint64s


class JobFeed:
    """S of a job as it arrives."""

    def __init__(self, job: Job, keys: Uint64s, words: int, meter: Meter) -> None:
        self.keys, self.words = keys, words
        self.payload = np.zeros(words, dtype=np.uint64)
        self.live = job.arrival == "replay"
        self._meter = meter
        self._due_us = arrival_clock_us(job.s.ts, job.start_us, job.speedup) if self.live else None

    def arrived(self) -> int:
        """Tuples that have arrived by now."""
        if self._due_us is None:
            return len(self.keys)
        return int(np.searchsorted(self._due_us, self._meter.now_us(), side="right"))

    def wait(self, taken: int) -> None:
        """Sleep until the next tuple is due."""
        if self._due_us is not None:
            self._meter.sleep_until_us(float(self._due_us[taken]))


def join_keys(job: Job) -> tuple[Uint64s, Uint64s]:
    """Return the keys of R and S; under a tumbling window they include its number."""
    r_codes, s_codes = encode_stream_keys(job.r, job.s, job.predicate)
    r_keys, s_keys = r_codes.astype(np.uint64), s_codes.astype(np.uint64)
    if isinstance(job.window, TumblingWindow):
        length_us = job.window.length_us
        numbers = np.concatenate([job.r.ts // length_us, job.s.ts // length_us])
        windows = np.unique(numbers, return_inverse=True)[1].astype(np.uint64) << np.uint64(32)
        r_keys |= windows[: job.r.rows]
        s_keys |= windows[job.r.rows :]
    return r_keys, s_keys


class SemiStreamEngine(Engine):
    """An equi-join of a stream with a relation in a store."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi"}),
        windows=frozenset({"all", "tumbling"}),
        order="none",
        platform="cpu",
        stores=True,
    )
    caching: ClassVar[bool]
    knobs: ClassVar[tuple[Knob, ...]] = _KNOBS

    def unusable(self) -> str | None:
        """Say so where Numba or pyarrow has no wheel."""
        from importlib.util import find_spec

        pyarrow = not_installed("pyarrow", needed_by="every semi-stream join")
        return without_numba() or (None if find_spec("pyarrow") else pyarrow)

    def check(self, job: Job) -> None:
        """Refuse what sheds tuples and says which have no partner."""
        super().check(job)
        if job.how != "inner" and job.knobs.get("shed_beyond"):
            raise InputError(
                f"a join that sheds tuples lacks pairs, so how {job.how} cannot be decided: drop "
                "shed_beyond, or ask for inner"
            )

    def prepare(self, job: Job, report: Report) -> Prepared:
        """Open R's store, written first if R is in memory, and compile the kernels."""
        prepared = (self._copied if job.r.in_memory else self._opened)(job, report)
        self._warm_up(job, prepared.relation.store)
        return prepared

    def _opened(self, job: Job, report: Report) -> Prepared:
        """Open a relation that is in a store."""
        from streamjoin.engines.semi.keys import CodedStore
        from streamjoin.relations.stream import StoredStream

        assert isinstance(job.r, StoredStream)
        for knob in self.knobs:
            if knob.name in OF_A_COPY and job.knobs[knob.name] != knob.default:
                raise InputError(
                    f"knob {knob.name} is for a relation that is written first, and R is in "
                    f"{job.r.source} already: drop the knob"
                )
        report(f"reading the first rows of {job.r.source}")
        store = CodedStore(job, job.r.store)
        return Prepared(_Relation(store), store.s_words)

    def _copied(self, job: Job, report: Report) -> Prepared:
        """Write R to a store of its own."""
        r_keys, s_keys = join_keys(job)
        kind, row_bytes = str(job.knobs["store"]), int(job.knobs["r_bytes"])
        kept_bytes = int(job.knobs["kept_bytes"]) or MIN_ROW_BYTES
        if not MIN_ROW_BYTES <= kept_bytes <= row_bytes:
            raise InputError(
                f"kept_bytes must be 0 or from {MIN_ROW_BYTES} to r_bytes, {row_bytes}, "
                f"not {kept_bytes}"
            )
        report(f"writing R to {kind}, {len(r_keys)} rows of {row_bytes} bytes")
        return Prepared(_relation(kind, r_keys, row_bytes, kept_bytes), s_keys)

    def _warm_up(self, job: Job, store: Store) -> None:
        """Compile the kernels, or load them from the cache, by calling each with nothing to do."""
        from streamjoin.engines.kernels.semi import expiry, filters, migration, steps, values
        from streamjoin.engines.semi.tables import Tables

        tables = Tables(_stream_words(job), store.payload_words, 1 << 16, caching=True)
        nothing, room = np.zeros(0, dtype=np.uint64), np.zeros(1, dtype=np.uint32)
        payload = np.zeros(_stream_words(job), dtype=np.uint64)
        outs = (room, room.copy())
        steps.take(nothing, 0, 0, payload, tables.shared, *outs)
        steps.probe(nothing, nothing, nothing, 0, 0, tables.shared, *outs)
        expiry.expire(0, 0, tables.shared)
        if self.caching:
            none, count = room[:0].copy(), len(tables.values)
            migration.nominate(0, 0, tables.shared)
            migration.demote(none, tables.shared)
            migration.compact(none, tables.shared)
            migration.reserve(none, none, none, 0, tables.shared)
            migration.waiting_nodes(tables.shared, np.zeros(count, dtype=np.uint32))
            rows, flags = np.zeros(count, dtype=np.uint32), np.zeros(count, dtype=np.bool_)
            values.survey(tables.shared, rows, flags)
            values.age(1, 0, tables.shared, flags)
            values.begin_cycle(tables.shared)
            migration.spread(tables.shared)
            filters.bits_set(tables.shared.filter)

    def run(self, job: Job, prepared: Prepared, meter: Meter) -> None:
        """Join, emitting pairs as chunks meet partitions."""
        from streamjoin.engines.semi.join import SemiStreamJoin

        store = prepared.relation.store
        feed = JobFeed(job, prepared.s_keys, _stream_words(job), meter)

        def sink(r_rows: Uint32s, s_rows: Uint32s) -> None:
            meter.emit(r_rows, s_rows)
            meter.progress(min(job.tuples, join.tally.taken), job.tuples)

        join = SemiStreamJoin(store, feed, self._settings(job, store), meter, sink)
        try:
            join.run()
        finally:
            costs, _ = cost.load(store.kind)
            work = join.work()
            model = {
                "loop_us": costs.loop_ns(work) / 1e3,
                "join_us": costs.join_ns(work) / 1e3,
                "read_us": costs.read_ns(work) / 1e3,
            }
            meter.device["semi_stream"] = {
                "store": store.kind,
                **join.details(),
                "cost_model": model,
            }
        meter.sleep_until_arrived(job)

    def _settings(self, job: Job, store: Store) -> Any:
        from streamjoin.engines.semi.settings import Settings

        knobs = {name: int(value) for name, value in job.knobs.items() if name != "store"}
        budget: int | None = knobs["memory_kib"] * 1024
        if not budget:
            width = knobs["r_bytes"] if job.r.in_memory else store.read_bytes
            relation_bytes = store.positions * width
            by_default = max(MIN_DEFAULT_BYTES, int(DEFAULT_SHARE * relation_bytes))
            budget = None if job.arrival == "replay" else by_default
        if budget is not None:
            budget = min(budget, self._sufficient_bytes(job, store))
        rows = knobs["partition_rows"]
        if not rows:
            costs, _ = cost.load(store.kind)
            memory = budget or MIN_DEFAULT_BYTES
            rows = cost.best_partition_rows(costs, memory, store.read_bytes)
        rows = min(rows, max(1, store.positions))
        return Settings(
            budget,
            rows,
            self.caching,
            knobs.get("switching_percent", 100) / 100,
            knobs.get("eviction_cycles", 10),
            float(knobs["deadline_s"]),
            knobs["shed_beyond"],
            store.positions,
            knobs.get("filter_bits", 0),
        )

    @staticmethod
    def _sufficient_bytes(job: Job, store: Store) -> int:
        """Return more bytes than all tuples of both sides need."""
        from streamjoin.engines.semi.layout import layout_bytes

        sizes = layout_bytes(store.row_bytes, int(job.knobs["s_bytes"]), store.row_bytes)
        of_row = sizes.record + sizes.value + sizes.entry + 2 * store.read_bytes
        of_stream = sizes.node + sizes.entry
        everything = max(1, job.s.rows) * of_stream + max(1, store.positions) * of_row
        return ENOUGH_BYTES + 2 * int(everything)


def _stream_words(job: Job) -> int:
    from streamjoin.engines.semi.layout import stream_words

    return stream_words(int(job.knobs["s_bytes"]))


class MeshJoin(SemiStreamEngine):
    """MESHJOIN: stream chunks staggered in a queue meet R, read from its store in a cycle."""

    name: ClassVar[str] = "meshjoin"
    caching: ClassVar[bool] = False


class Ssbj(SemiStreamEngine):
    """Semi-Stream Balanced Join: MESHJOIN behind a cache that the cache inequality fills."""

    name: ClassVar[str] = "ssbj"
    caching: ClassVar[bool] = True
    knobs: ClassVar[tuple[Knob, ...]] = (
        *_KNOBS,
        Knob("switching_percent", 100, "Switching factor of the inequality, in percent.", 1, 10000),
        Knob("eviction_cycles", 4, "Cycles of which the uses of a value are averaged.", 1, 32),
        Knob("filter_bits", 4, "Bits a row of R of the filter over R's keys; 0: none.", 0, 64),
    )
