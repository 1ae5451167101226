"""The engine protocol: an engine's declarations, its input and its output.

An engine declares its :class:`Capabilities` and :class:`Knob` s, is given a :class:`Job`, and emits
pairs into a :class:`~streamjoin.metrics.Meter`. It neither reads clocks nor prints. One test suite
over the catalog exercises exactly what is declared here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from streamjoin.engines.job import ARRIVALS, Job
from streamjoin.engines.kinds import Alone
from streamjoin.engines.session import Session
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.metrics import Meter
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.order import ORDERS, Order
from streamjoin_common.suggestions import did_you_mean

Report = Callable[[str], None]


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do.

    Attributes
    ----------
    predicates : frozenset of str
        Of ``"equi"`` and ``"band"``; band engines join conjunctions of both kinds.
    windows : frozenset of str
        Of ``"all"``, ``"tumbling"``, ``"count"``, ``"time"``.
    order : str
        The strongest order that it promises: ``"none"``, ``"outer"``, ``"inner"``.
    platform : str
        ``"cpu"``, ``"fpga"``, ``"sql"``.
    parallel : bool
        Whether more than one thread helps it.
    backends : tuple of str
        Where it can run, the default first; empty for software.
    arrivals : frozenset of str
        Of ``"instant"`` and ``"replay"``.
    live : bool
        Whether it can continue from filled windows: :attr:`Job.carried`.
    stores : bool
        Whether R may be a relation in a store, which is not in memory.
    first_pairs : bool
        Whether, under ``semi`` and ``anti``, it gives the first pair of each tuple of R alone.
    """

    predicates: frozenset[str]
    windows: frozenset[str]
    order: Order
    platform: str
    parallel: bool = False
    backends: tuple[str, ...] = ()
    arrivals: frozenset[str] = frozenset(ARRIVALS)
    live: bool = False
    stores: bool = False
    first_pairs: bool = False


@dataclass(frozen=True)
class Knob:
    """One tuning parameter, as ``--set name=value`` takes it."""

    name: str
    default: int | str
    doc: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The values that it takes, in words."""
        if isinstance(self.default, str):
            return " or ".join(self.choices)
        upper = f"to {self.maximum}" if self.maximum is not None else "up"
        return f"{self.minimum or 0} {upper}"

    def parse(self, given: str | int) -> int | str:
        """Check a value given as a string or an integer.

        Raises
        ------
        InputError
            If the knob does not take the value.
        """
        if isinstance(self.default, str):
            if given in self.choices:
                return str(given)
            near = did_you_mean(given, self.choices)
            raise InputError(f"knob {self.name} takes {self.range}, not {given!r}{near}")
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        digits = isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 18
        value = int(given) if whole or digits else None
        minimum, maximum = self.minimum or 0, self.maximum
        if value is None or value < minimum or (maximum is not None and value > maximum):
            raise InputError(f"knob {self.name} takes an integer from {self.range}, not {given!r}")
        return value


def without_numba() -> str | None:
    """Return why compiled kernels cannot run here, or None if they can."""
    return None if find_spec("numba") else not_installed("numba", needed_by="every compiled engine")


class Engine(ABC):
    """A way to join. The first line of a subclass's docstring is shown to users."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    knobs: ClassVar[tuple[Knob, ...]] = ()

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return (type(self).__doc__ or self.name).strip().splitlines()[0]

    def unusable(self) -> str | None:
        """Why it cannot run here, or None if it can."""
        return None

    def threads_for(self, asked: int) -> int:
        """Return the threads that it runs with if ``asked`` are asked for."""
        return asked if self.capabilities.parallel else 1

    def prepare(self, job: Job, report: Report) -> Any:
        """Do what must not be timed: compile kernels, build a model, write files.

        Parameters
        ----------
        job : Job
            What will be joined.
        report : callable
            Called with a line for each slow step.

        Returns
        -------
        object
            What :meth:`run` needs besides the job, for any number of consecutive runs of this job.
            None if it needs nothing, as every engine that joins live.
        """
        return None

    def hand_over(self, job: Job, report: Report, prepared: Any = None) -> Any:
        """Prepare for a single call, as a user of the engine would; :meth:`prepare` by default.

        ``prepared`` is what :meth:`prepare` returned, where it was called before: a connection
        that it holds is open.
        """
        return self.prepare(job, report)

    def pairs_beforehand(self, job: Job) -> int:
        """Count the result's pairs, where the engine would continue until memory runs out.

        By default 0: the engine stops by itself, as :meth:`Meter.emit` makes it.
        """
        return 0

    def open(self, job: Job) -> Session | None:
        """Return the engine's persistent form for a live join, None where it has none.

        Parameters
        ----------
        job : Job
            Carried tuples alone, of the types that all later ones have.
        """
        return None

    def promise(self, job: Job) -> str:
        """Return the order of this job's result, one of :data:`ORDERS`.

        It is the strongest that the engine keeps, or the one asked for if order has a cost.
        """
        return self.capabilities.order

    @abstractmethod
    def run(self, job: Job, prepared: Any, meter: Meter) -> Alone | None:
        """Join, and emit every pair of the result once into the meter.

        Parameters
        ----------
        job : Job
            What to join.
        prepared : object
            What :meth:`prepare` returned for this job.
        meter : Meter
            Takes the pairs and the times.

        Returns
        -------
        Alone, optional
            The tuples without a partner, if the engine decides the kind of join itself; the pairs
            are then those that the kind needs. By default the host decides it.
        """

    @property
    def knob_names(self) -> frozenset[str]:
        """Names of its tuning parameters."""
        return frozenset(knob.name for knob in self.knobs)

    def resolve_knobs(self, knobs: Mapping[str, Any]) -> dict[str, int | str]:
        """Return a value for every knob: the given one, checked, or the default.

        Raises
        ------
        InputError
            If a knob is unknown or does not take its value.
        """
        known = {knob.name: knob for knob in self.knobs}
        for name in knobs:
            if name not in known:
                have = ", ".join(known) or "none"
                near = did_you_mean(name, known)
                raise InputError(f"{self.name} has no knob {name!r}; it has {have}{near}")
        return {name: known[name].parse(knobs.get(name, known[name].default)) for name in known}

    def check(self, job: Job) -> None:
        """Refuse a job that is beyond the declared capabilities.

        Raises
        ------
        UnsupportedError
            Naming the engine, the request and what the engine can do.
        """
        can = self.capabilities
        kind = job.predicate.kind
        if kind not in can.predicates:
            have = ", ".join(sorted(can.predicates))
            raise UnsupportedError(f"{self.name} cannot join with a {kind} predicate, only {have}")
        if job.window.kind not in can.windows:
            have = ", ".join(sorted(can.windows))
            raise UnsupportedError(
                f"{self.name} cannot join under window {job.window.text}, only {have}"
            )
        if ORDERS.index(job.order) > ORDERS.index(can.order):
            raise UnsupportedError(
                f"{self.name} promises order {can.order}, not {job.order}: choose another engine"
            )
        if job.arrival not in can.arrivals:
            have = ", ".join(sorted(can.arrivals))
            raise UnsupportedError(f"{self.name} cannot do arrival {job.arrival}, only {have}")
        if job.backend is not None and job.backend not in can.backends:
            have = ", ".join(can.backends) or "none"
            near = did_you_mean(job.backend, can.backends)
            raise UnsupportedError(f"{self.name} has no backend {job.backend!r}, only {have}{near}")
