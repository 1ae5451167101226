"""Where a hardware engine's design runs: in a model built for it, or as a board's overlay."""

from dataclasses import dataclass
from pathlib import Path

from streamjoin.device import model, overlay, pynq
from streamjoin.device.base import Device
from streamjoin.device.manifest import MANIFEST_NAME, read_manifest
from streamjoin.engines.base import Knob
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, UnavailableError, UnsupportedError
from streamjoin_common.contract import DesignParams, Term, TermKind
from streamjoin_common.language.order import ORDERS
from streamjoin_common.spelling import knob, option

MODEL, PYNQ = "model", "pynq"
BACKENDS = (MODEL, PYNQ)

CLOCK = Knob("clock_mhz", 100, "Clock to assume for a model.", 1, 1000)

HOST, DEVICE = "host", "device"
KINDS = Knob(
    "kinds",
    HOST,
    "What finds tuples without partner: host, from the pairs, or device, under sliding windows.",
    choices=(HOST, DEVICE),
)

ON, OFF = "on", "off"
SELF_TEST = Knob(
    "self_test",
    ON,
    "Whether a board joins a short known input first, each time it loads the overlay.",
    choices=(ON, OFF),
)

NO_OVERLAY = "none"


@dataclass(frozen=True)
class OverlayKnob(Knob):
    """A knob that takes the path of a bitstream."""

    @property
    def range(self) -> str:
        """The values that it takes, in words."""
        return "the path of a .bit file"

    def parse(self, given: str | int) -> int | str:
        """Check that the value is the path of a bitstream.

        Raises
        ------
        InputError
            If it is not.
        """
        if isinstance(given, str) and (given == NO_OVERLAY or Path(given).suffix == ".bit"):
            return given
        raise InputError(f"knob {self.name} takes {self.range}, not {given!r}")


OVERLAY = OverlayKnob(
    "overlay", NO_OVERLAY, "Bitstream for --backend pynq, its .hwh and manifest.json beside it."
)


def unusable() -> str | None:
    """Return why neither a model nor a board can be used here, or None."""
    reasons = (model.unusable(), overlay.unusable())
    return None if None in reasons else "; ".join(map(str, reasons))


def check_backend(job: Job) -> None:
    """Refuse a backend that cannot run here.

    Raises
    ------
    UnavailableError
        Saying what is missing.
    """
    where = PYNQ if job.backend == PYNQ else MODEL
    reason = (overlay if where == PYNQ else model).unusable()
    if reason is not None:
        raise UnavailableError(f"{option('backend', where)} cannot run here: {reason}")


def design(name: str, job: Job, wanted: DesignParams) -> DesignParams:
    """Return the design that a job runs on: the wanted one, or what the overlay holds.

    Parameters
    ----------
    name : str
        The engine, for messages.
    job : Job
        What is to be joined.
    wanted : DesignParams
        The design that the job's knobs ask for.

    Raises
    ------
    InputError
        If no overlay is named, or its manifest cannot be read.
    UnsupportedError
        If the overlay's design cannot do the job.
    """
    if job.backend != PYNQ:
        return wanted
    held = read_manifest(_overlay(job).with_name(MANIFEST_NAME)).params
    needs = (
        ("the design", held.design, wanted.design),
        ("terms", _kinds(held.terms), _kinds(wanted.terms)),
        ("timestamp_bits", held.timestamp_bits, wanted.timestamp_bits),
        ("theta", held.theta, None),
        ("kinds", held.kinds, wanted.kinds if wanted.decides_kinds else held.kinds),
        ("stars", held.stars, wanted.stars if wanted.has_groups else held.stars),
    )
    for what, have, need in needs:
        if have != need:
            raise UnsupportedError(
                f"{name}: the overlay's design has {what} {have} and this join needs {need}: build "
                "a bitstream for it"
            )
    if ORDERS.index(held.order_promise) < ORDERS.index(wanted.order_promise):
        raise UnsupportedError(
            f"{name}: the overlay's design promises order {held.order_promise}, not "
            f"{wanted.order_promise}: build a bitstream for it"
        )
    if max(job.r.rows, job.s.rows) > 1 << held.payload_bits:
        raise UnsupportedError(
            f"{name}: the overlay's design numbers rows with {held.payload_bits} bits: join at "
            f"most {1 << held.payload_bits} tuples of a stream"
        )
    return held


def _kinds(terms: tuple[Term, ...]) -> str:
    """Write terms for comparison: equality of 32 bits is the same for every type."""
    return ",".join("equi" if term.kind is TermKind.EQUI else term.text for term in terms)


def _overlay(job: Job) -> Path:
    if job.knobs["overlay"] == NO_OVERLAY:
        raise InputError(
            f"{option('backend', 'pynq')} needs {knob('overlay', 'FILE.bit')}, the bitstream "
            "to load"
        )
    return Path(str(job.knobs["overlay"]))


def path_of(job: Job, params: DesignParams, report: model.Report) -> Path:
    """Return the model's folder, built if it is not in the cache, or the overlay's bitstream."""
    return _overlay(job) if job.backend == PYNQ else model.build(params, report)


def opened(job: Job, params: DesignParams, path: Path) -> Device:
    """Open the device that holds a job's design, at what :func:`path_of` returned."""
    if job.backend == PYNQ:
        return pynq.PynqDevice(path, tested=job.knobs["self_test"] == ON)
    return model.ModelDevice(params, path, clock_hz=int(job.knobs["clock_mhz"]) * 1e6)
