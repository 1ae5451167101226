"""The one sequence behind every verb: read the inputs, resolve the engine, run, verify.

``sj.join``, ``streamjoin join``, ``compare``, ``bench``, ``rate`` and ``advise`` only fill in a
:class:`Request` and show its result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamjoin import run, verify
from streamjoin.advise import choose
from streamjoin.engines import catalog
from streamjoin.engines.base import Engine
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.metrics import ProgressCallback
from streamjoin.relations import Relation
from streamjoin.run import Moment, Outcome, Prepared
from streamjoin.streams import as_streams, read_streams
from streamjoin.tuples import Stream
from streamjoin.verify import Expected
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_common.spelling import option


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a join, independent of its inputs.

    Attributes
    ----------
    predicate, window
        The join condition.
    arrivals : Arrivals, optional
        The arrival columns; by default ``ts``, where the window needs it or there is one.
    lateness_us : int, optional
        Maximum lateness of tuples that are put in order; arrival times that go back are refused
        by default.
    threads, speedup, order, backend, max_pairs, how
        As :class:`~streamjoin.engines.job.Job` has them.
    arrival : str, optional
        ``"instant"`` or ``"replay"``; None replays if there are arrival times and the engine
        supports it.

    Raises
    ------
    InputError
        If no engine takes an option.
    """

    predicate: Predicate
    window: Window
    arrivals: Arrivals = field(default_factory=Arrivals)
    lateness_us: int | None = None
    threads: int = 1
    arrival: str | None = "instant"
    speedup: float = 1.0
    order: str = "none"
    backend: str | None = None
    max_pairs: int | None = None
    how: str = "inner"

    def __post_init__(self) -> None:
        parse_how(self.how)
        run.check_options(
            threads=self.threads,
            speedup=self.speedup,
            order=self.order,
            arrival=self.arrival or "replay",
            max_pairs=self.max_pairs,
        )

    def read(self, r: Path | Relation, s: Path) -> Job:
        """Read both inputs from files; R may be a relation in a store.

        Raises
        ------
        InputError
            As :func:`~streamjoin.streams.read_streams`.
        """
        return self._job(read_streams(r, s, self.predicate, self.arrivals, self.lateness_us))

    def take(self, r: Any, s: Any) -> Job:
        """Take both inputs from Python.

        Raises
        ------
        InputError
            As :func:`~streamjoin.streams.as_streams`.
        """
        return self._job(as_streams(r, s, self.predicate, self.arrivals, self.lateness_us))

    def _job(self, streams: tuple[Stream, Stream]) -> Job:
        job = Job(
            *streams,
            self.predicate,
            self.window,
            threads=self.threads,
            arrival=self.arrival or "replay",
            speedup=self.speedup,
            order=self.order,
            backend=self.backend,
            max_pairs=self.max_pairs,
            how=self.how,
        )
        at_rest = job.start_us == job.end_us == 0
        return replace(job, arrival="instant") if self.arrival is None and at_rest else job

    def resolve(
        self,
        name: str,
        job: Job,
        knobs: Mapping[str, Any] | None = None,
        *,
        will_verify: bool = False,
    ) -> "ResolvedJoin":
        """Choose the engine and complete the job for it.

        Parameters
        ----------
        name : str
            An engine's name, or ``"auto"``.
        job : Job
            From :meth:`read` or :meth:`take`.
        knobs : mapping, optional
            The engine's tuning parameters.
        will_verify : bool
            Whether the result will be compared with the oracle's.

        Raises
        ------
        InputError, UnsupportedError, UnavailableError
            If engine, input and machine do not fit together, or the result cannot be verified.
        """
        engine = choose(job) if name == "auto" else catalog.get(name)
        given = knobs if name == "auto" and isinstance(knobs, Mapping) else {}
        unknown = next((knob for knob in given if knob not in engine.knob_names), None)
        if unknown is not None:
            raise InputError(
                f"{option('engine', 'auto')} chose {engine.name}, which has no knob {unknown!r}: "
                "name the engine whose knob it is"
            )
        can = engine.capabilities
        # A simulation takes long to wait.
        if self.arrival is None and ("replay" not in can.arrivals or can.platform == "fpga"):
            job = replace(job, arrival="instant")
        complete = run.complete(engine, job, knobs)
        if will_verify:
            verify.refuse(complete)
        return ResolvedJoin(engine, complete)


@dataclass(frozen=True)
class ResolvedJoin:
    """An engine and a job that is complete for it."""

    engine: Engine
    job: Job

    def prepare(self, report: Callable[[str], None] | None = None) -> Prepared:
        """Do what must not be timed, once for any number of runs."""
        return run.prepare(self.engine, self.job, report)

    def hand_over(self, prepared: Prepared) -> Prepared:
        """Do what a single call takes before the join, where it was prepared once before."""
        return run.hand_over(self.engine, self.job, prepared=prepared)

    def run(
        self,
        on_progress: ProgressCallback | None = None,
        report: Callable[[str], None] | None = None,
        prepared: Prepared | None = None,
        *,
        began: Moment | None = None,
    ) -> Outcome:
        """Run the engine, prepared before or now; the whole call counts from ``began``."""
        return run.run(self.engine, self.job, on_progress, report, prepared, began=began)

    def arriving(self, arrival: str, speedup: float = 1.0) -> "ResolvedJoin":
        """Return the same join with other arrivals."""
        return ResolvedJoin(self.engine, replace(self.job, arrival=arrival, speedup=speedup))

    def verify(self, outcome: Outcome, expected: Expected) -> None:
        """Compare an outcome's rows and their times with the right ones, and check their order.

        Raises
        ------
        MismatchError
            Naming the first row that is missing, surplus, out of time or out of order.
        """
        rows, promise = outcome.rows, self.engine.promise(self.job)
        verify.check(rows, expected.rows, self.engine.name)
        if expected.ts is not None:
            verify.check_times((rows, outcome.ts), (expected.rows, expected.ts), self.engine.name)
        verify.check_order(outcome.pairs, self.job, promise, outcome.times)
