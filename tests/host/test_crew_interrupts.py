"""An interrupt that arrives while a crew asks its threads: none of their work outlives the crew."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from streamjoin.engines import crew as module
from streamjoin.engines.crew import Crew

DEADLINE_S = 60
real_start = threading.Thread.start


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Threads that were started; who started the first one was interrupted, but it runs."""
    threads: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        real_start(thread)
        threads.append(thread)
        if len(threads) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    return threads


class Work:
    """Notes that it has begun and that it has ended, some time later."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.never = threading.Event()
        self.calls: list[str] = []

    def __call__(self, *_: Any) -> None:
        self.calls.append("begun")
        self.has_begun.set()
        self.never.wait(0.2)  # longer than a crew takes that does not wait for it
        self.calls.append("ended")

    @property
    def is_over(self) -> bool:
        """Whether all that has begun has ended."""
        return self.calls.count("begun") == self.calls.count("ended")


def _each(crew: Crew, work: Work) -> None:
    crew.each(work, range(4))


def _together(crew: Crew, work: Work) -> None:
    crew.together(work, lambda: None)


def _beside(crew: Crew, work: Work) -> None:
    crew.beside(work)


@pytest.mark.parametrize("ask", [_each, _together, _beside])
def test_no_work_outlives_a_crew_whose_start_was_interrupted(
    ask: Callable[[Crew, Work], None], started: list[threading.Thread]
) -> None:
    work = Work()
    with pytest.raises(KeyboardInterrupt), Crew(2) as crew:
        ask(crew, work)
    assert work.is_over
    calls = len(work.calls)
    assert started
    for thread in started:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    assert len(work.calls) == calls, "a call was made after the crew had ended"


def test_an_interrupt_while_a_crew_ends_waits_for_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, waits = Work(), []
    real_wait = module.wait

    def wait(*arguments: Any) -> Any:
        waits.append(arguments)
        if len(waits) < 3:
            raise KeyboardInterrupt
        return real_wait(*arguments)

    def begin(crew: Crew) -> None:
        crew.beside(work)
        assert work.has_begun.wait(DEADLINE_S)
        monkeypatch.setattr(module, "wait", wait)

    with pytest.raises(KeyboardInterrupt), Crew(2) as crew:
        begin(crew)
    assert work.calls == ["begun", "ended"]
    assert len(waits) >= 3
