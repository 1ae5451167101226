"""The catalogue as data: what each engine can do, its knobs, and whether it is usable here."""

from dataclasses import asdict, dataclass
from typing import Any

from streamjoin.engines import catalog
from streamjoin.engines.base import Knob
from streamjoin_common.language.order import Order


@dataclass(frozen=True)
class KnobEntry:
    """A tuning parameter of an engine.

    Attributes
    ----------
    name : str
        As ``--set NAME=VALUE`` and ``knobs=`` take it.
    default : int or str
        Its value where none is given.
    range : str
        The values that it takes: ``"1 to 1024"``.
    meaning : str
        What it does.
    """

    name: str
    default: int | str
    range: str
    meaning: str


@dataclass(frozen=True)
class EngineEntry:
    """An engine of the catalogue.

    Attributes
    ----------
    engine, summary : str
        Its name, and what it is.
    platform : str
        Where it runs: ``"cpu"``, ``"fpga"``, ``"spark"``, or whose own join it is.
    predicates, windows : tuple of str
        Kinds that it joins.
    order : str
        The strongest order that it promises.
    arrivals : tuple of str
        Of ``"instant"`` and ``"replay"``.
    backends : tuple of str
        Where hardware runs; empty for software.
    parallel, live, stores : bool
        Whether threads help it, it joins tuples while they arrive, R may be in a store.
    knobs : tuple of KnobEntry
        Its tuning parameters.
    unusable : str or None
        Why it cannot run here; None if it can.
    """

    engine: str
    summary: str
    platform: str
    predicates: tuple[str, ...]
    windows: tuple[str, ...]
    order: Order
    arrivals: tuple[str, ...]
    backends: tuple[str, ...]
    parallel: bool
    live: bool
    stores: bool
    knobs: tuple[KnobEntry, ...]
    unusable: str | None

    @property
    def usable(self) -> bool:
        """Whether it can run here."""
        return self.unusable is None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``streamjoin engines --json`` prints."""
        plain = asdict(self)
        plain["knobs"] = {knob.pop("name"): knob for knob in plain["knobs"]}
        plain["usable"] = plain.pop("unusable") or "yes"
        return plain


def entry(name: str) -> EngineEntry:
    """Describe one engine.

    Raises
    ------
    InputError
        If no engine has that name.
    """
    engine = catalog.get(name)
    can = engine.capabilities
    return EngineEntry(
        engine=name,
        summary=engine.summary,
        platform=can.platform,
        predicates=tuple(sorted(can.predicates)),
        windows=tuple(sorted(can.windows)),
        order=can.order,
        arrivals=tuple(sorted(can.arrivals)),
        backends=can.backends,
        parallel=can.parallel,
        live=can.live,
        stores=can.stores,
        knobs=tuple(_knob(knob) for knob in engine.knobs),
        unusable=engine.unusable(),
    )


def engines(name: str | None = None) -> tuple[EngineEntry, ...]:
    """Every engine with its capabilities and knobs, and whether it is usable here.

    Parameters
    ----------
    name : str, optional
        The one engine to describe.

    Raises
    ------
    InputError
        If no engine has that name.

    Examples
    --------
    >>> import streamjoin as sj
    >>> [each.engine for each in sj.engines() if each.stores]
    ['meshjoin', 'ssbj']
    """
    return tuple(entry(each) for each in (catalog.names() if name is None else (name,)))


def _knob(knob: Knob) -> KnobEntry:
    return KnobEntry(knob.name, knob.default, knob.range, knob.doc)
