"""An interrupt that arrives while a crew asks its threads: none of their work outlives the crew."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamjoin.engines.crew import Crew

LONG_S = 0.2
real_start = threading.Thread.start


@pytest.fixture
def interrupted_start(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first thread that is started runs, but who started it is interrupted."""
    armed = [True]

    def start(thread: threading.Thread) -> None:
        real_start(thread)
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    yield
    assert not armed


class Work:
    """Counts what has begun and what has ended."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def __call__(self, *_: Any) -> None:
        self.begun += 1
        time.sleep(LONG_S)
        self.ended += 1


def _each(crew: Crew, work: Work) -> None:
    crew.each(work, range(4))


def _together(crew: Crew, work: Work) -> None:
    crew.together(work, lambda: None)


def _beside(crew: Crew, work: Work) -> None:
    crew.beside(work)


@pytest.mark.usefixtures("interrupted_start")
@pytest.mark.parametrize("ask", [_each, _together, _beside])
def test_no_work_outlives_a_crew_whose_start_was_interrupted(
    ask: Callable[[Crew, Work], None],
) -> None:
    work = Work()
    with pytest.raises(KeyboardInterrupt), Crew(2) as crew:
        ask(crew, work)
    assert work.begun == work.ended
    begun = work.begun
    time.sleep(2 * LONG_S)
    assert work.begun == begun


def test_an_interrupt_while_a_crew_ends_waits_for_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from streamjoin.engines import crew as module

    work, calls = Work(), []
    real_wait = module.wait

    def wait(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) < 3:
            raise KeyboardInterrupt
        return real_wait(*arguments)

    def begin(crew: Crew) -> None:
        crew.beside(work)
        time.sleep(LONG_S / 2)
        monkeypatch.setattr(module, "wait", wait)

    with pytest.raises(KeyboardInterrupt), Crew(2) as crew:
        begin(crew)
    assert work.begun == work.ended == 1
    assert len(calls) >= 3
