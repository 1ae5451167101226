"""The self-test of a device: it passes on every design and finds what is wrong with one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamjoin.device import model, selftest
from streamjoin.device.base import Results
from streamjoin.device.selftest import TUPLES, known_inputs, self_test
from streamjoin.errors import DeadlineError, DeviceError
from streamjoin_common.contract import DesignParams, Theta, parse_term, registers, tuple_layout
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND

DESIGNS = {
    **{name: PRESETS[name] for name in PRESETS if name.startswith("tiny")},
    "timed": DesignParams(
        cores=3, segment_tuples=8, lanes=2, forward="fast", timestamp_bits=8, terms=REFERENCE_BAND
    ),
    "all kinds": DesignParams(cores=2, segment_tuples=8, forward="fast", kinds="all"),
    "few bits": DesignParams(cores=1, segment_tuples=4, payload_bits=8),
    "unsigned": DesignParams(
        design="splitjoin", cores=2, segment_tuples=8, terms=(parse_term("band:uint32"),)
    ),
}
pytestmark = pytest.mark.timeout(600)  # the first use builds the models


def opened(name: str) -> model.ModelDevice:
    params = DESIGNS[name]
    return model.ModelDevice(params, model.build(params, lambda _: None))


@pytest.mark.parametrize("name", DESIGNS)
def test_every_kind_of_design_passes_and_is_as_before(name: str) -> None:
    with opened(name) as device:
        device.write("window_r", 3)
        settings = [each.name for each in registers(device.params) if each.access == "rw"]
        before = {each: device.read(each) for each in settings}
        assert self_test(device) > 100
        assert {each: device.read(each) for each in settings} == before
        for counter in ("tuples_r", "tuples_s", "results", "cycles_low"):
            assert device.read(counter) == 0
        assert device.params.timestamp_bits == 0 or device.read("evicted") == 0


@pytest.mark.parametrize("name", PRESETS)
def test_inputs_are_known_for_every_preset(name: str) -> None:
    for known in known_inputs(PRESETS[name]):
        assert known.pairs is not None
        assert len(known.pairs) > 100
        assert len(known.beats.dest) == TUPLES
        # Tuples leave the windows.
        assert min(np.bincount(known.beats.dest)) > 1.5 * min(known.windows)


@pytest.mark.parametrize("name", ["tiny", "tiny-band", "tiny-index"])
def test_the_known_pairs_are_those_of_the_definition(name: str) -> None:
    """In the plainest way, from the keys as they are packed."""
    params = PRESETS[name]
    for known in known_inputs(params):
        keys = []
        for each in known.beats.data:
            whole = int.from_bytes(each.tobytes(), "little")
            fields = {
                field.name: np.uint32(whole >> field.offset & 0xFFFFFFFF)
                for field in tuple_layout(params)
            }
            kinds = {"int32": np.int32, "uint32": np.uint32, "float32": np.float32}
            keys.append(
                [
                    float(fields[f"key{index}"].view(kinds[term.type.value]))
                    for index, term in enumerate(params.terms)
                ]
            )
        past: tuple[list[int], list[int]] = ([], [])
        pairs = []
        for number, side in enumerate(known.beats.dest.tolist()):
            for other in past[1 - side][-known.windows[1 - side] :]:
                r, s = (number, other) if side == 0 else (other, number)
                is_band = params.terms[0].kind.value == "band"
                lo, hi = (selftest.LO, selftest.HI) if is_band else (0, 0)
                if all(b - lo <= a <= b + hi for a, b in zip(keys[r], keys[s], strict=True)):
                    pairs.append(r << 32 | s)
            past[side].append(number)
        assert known.pairs is not None
        assert known.pairs.tolist() == sorted(pairs)


Fault = Callable[[Any, pytest.MonkeyPatch], None]


def _drops_a_result(device: Any, patch: pytest.MonkeyPatch) -> None:
    _results(device, patch, lambda data: data[1:])


def _turns_a_bit(device: Any, patch: pytest.MonkeyPatch) -> None:
    def turned(data: Any) -> Any:
        data = data.copy()
        data[0, 0] ^= 1
        return data

    _results(device, patch, turned)


def _doubles_a_result(device: Any, patch: pytest.MonkeyPatch) -> None:
    _results(device, patch, lambda data: np.concatenate([data, data[:1]]))


def _results(device: Any, patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    stream = device.stream

    def changed(beats: Any, on_results: Any, on_taken: Any) -> Any:
        def take(results: Results) -> None:
            on_results(Results(change(results.data), results.cycles))

        return stream(beats, take, on_taken)

    patch.setattr(device, "stream", changed)


def _loses(register: str) -> Fault:
    def lose(device: Any, patch: pytest.MonkeyPatch) -> None:
        write = device.write

        def kept(name: str, value: int) -> None:
            if name != register:
                write(name, value)

        patch.setattr(device, "write", kept)

    return lose


def _stops(device: Any, patch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise DeadlineError("the design took no tuple")

    patch.setattr(device, "stream", stop)


@pytest.mark.parametrize(
    ("fault", "kind", "sentence"),
    [
        (_drops_a_result, DeviceError, r"self-test failed: of \d+ known pairs of 600 tuples [1-9]"),
        (_turns_a_bit, DeviceError, r"[1-9]\d* are missing, and [1-9]\d* results are wrong; this"),
        (_doubles_a_result, DeviceError, r" 0 are missing, and [1-9]\d* results are wrong; this"),
        (_loses("window_r"), DeviceError, r" 0 are missing, and [1-9]\d* results are wrong; this"),
        (_loses("window_s"), DeviceError, r" 0 are missing, and [1-9]\d* results are wrong; this"),
        (_loses("band_lo0"), DeviceError, r"[1-9]\d* are missing, and 0 results are wrong; this"),
        (_loses("band_hi1"), DeviceError, r"[1-9]\d* are missing, and 0 results are wrong; this"),
        (_stops, DeadlineError, r"^the board's self-test did not end: the design took no tuple; "),
    ],
)
def test_what_is_wrong_is_one_sentence_that_says_where_to_look(
    fault: Fault, kind: type[Exception], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("tiny-band") as device:
        fault(device, monkeypatch)
        with pytest.raises(kind, match=sentence) as caught:
            self_test(device)
        assert str(caught.value).endswith("see First contact in docs/boards.md")


def near(r: Any, s: Any) -> Any:
    """Return whether two keys are at most two apart: a predicate of one's own."""
    return abs(r.key0 - s.key0) <= 2


def test_of_a_users_predicate_no_pair_is_known() -> None:
    params = DesignParams(
        cores=1, segment_tuples=4, terms=(parse_term("key:int32"),), theta=Theta.of(near)
    )
    assert [known.pairs for known in known_inputs(params)] == [None, None]
