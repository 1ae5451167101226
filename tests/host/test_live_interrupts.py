"""Live joins that are interrupted, at every line that a push and a round run."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.tuples import Pairs

PIECE = 3
WATCHED = ("live/joiner.py", "live/rounds.py", "live/side.py", "live/held.py", "flat/live.py")


class Interrupts:
    """Raises KeyboardInterrupt at the n-th line of a call."""

    def __init__(self, files: tuple[str, ...] = WATCHED) -> None:
        self.left, self._files = 0, files

    def during(self, lines: int, call: Callable[[], Any]) -> bool:
        """Call, interrupted after so many lines; return whether it was."""
        self.left, before = lines, sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _enter(self, frame: FrameType, _event: str, _given: Any) -> Any:
        return self._line if frame.f_code.co_filename.endswith(self._files) else None

    def _line(self, _frame: FrameType, event: str, _given: Any) -> Any:
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self._line


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ("inner", {"engine": "ibwj-flat"}),
        ("inner", {"engine": "ibwj-flat", "band": "k=k:1:1"}),
        ("full", {"engine": "kang", "max_pairs": 20}),
    ],
)
def test_an_interrupt_at_any_line_loses_and_doubles_no_pair(
    how: Any, options: dict[str, Any]
) -> None:
    asked = {"on": "k"} | options
    asked = {name: value for name, value in asked.items() if name != "on" or "band" not in asked}
    window, rng, interrupts = "count:40", np.random.default_rng(1), Interrupts()
    rows: list[tuple[int, int]] = []
    pushed: dict[str, list[Any]] = {"r": [], "s": []}
    lines = {"push": 1, "results": 1}

    def take() -> None:
        for matches in joiner.results():
            rows.extend(zip(matches.r_rows.tolist(), matches.s_rows.tolist(), strict=True))

    def tried(what: str, call: Callable[[], Any]) -> bool:
        """Interrupt a call at the next line of its kind; one that ran to its end begins anew."""
        interrupted = interrupts.during(lines[what], call)
        lines[what] = lines[what] + 1 if interrupted else -1
        return interrupted

    now = 0
    with sj.StreamJoiner(**asked, how=how, window=window) as joiner:
        while max(lines.values()) > 0:
            for name, push in (("r", joiner.push_r), ("s", joiner.push_s)):
                ts = now + np.arange(PIECE)
                data = {"k": rng.integers(0, 25, PIECE), "ts": ts}
                before = joiner.metrics[f"n_{name}"]
                if lines["push"] > 0:
                    tried("push", lambda push=push, data=data: push(data))
                if joiner.metrics[f"n_{name}"] == before:
                    push(data)
                pushed[name].append(data)
            now += PIECE
            if lines["results"] > 0:
                tried("results", take)
            else:
                take()
            take()
        joiner.end()
        take()
        metrics = joiner.metrics
    sides = [
        {name: np.concatenate([each[name] for each in pushed[side]]) for name in ("k", "ts")}
        for side in "rs"
    ]
    asked.pop("max_pairs", None)
    right = sj.join(*sides, **{**asked, "engine": "oracle"}, how=how, window=window)
    found = Pairs(*np.array(rows, dtype=np.int64).T)
    assert found.difference(Pairs(right.r_rows, right.s_rows)) is None
    assert metrics["digest"] == right.metrics["digest"]
    assert now > 50 * PIECE  # that many lines were tried


def test_an_interrupt_while_a_session_opens_loses_and_doubles_no_pair() -> None:
    interrupts, lines = Interrupts(("live/rounds.py",)), 0
    keys = np.arange(3)
    while True:
        lines += 1
        rows: list[int] = []
        with sj.StreamJoiner(on="k", window="count:9", engine="ibwj-flat") as joiner:
            joiner.push_r({"k": keys})
            for _ in joiner.results():  # over windows that are filled anew
                raise AssertionError
            assert joiner._book.now.progress.session is None
            joiner.push_s({"k": keys})

            def take(joiner: Any = joiner, rows: list[int] = rows) -> None:
                for matches in joiner.results():
                    rows.extend(matches.r_rows.tolist())

            interrupted = interrupts.during(lines, take)
            take()
            assert sorted(rows) == [0, 1, 2], lines
            assert joiner._book.now.progress.session is not None
        if not interrupted:
            break
    assert lines > 50
