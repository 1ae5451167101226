"""Waiting for work that a signal's exception ends."""

import _thread
import signal
import threading

import pytest

from streamjoin_datagen.session.interrupts import interruptible

DEADLINE_S = 60


class HangUpError(BaseException):
    """What the handler raises."""


def test_an_interrupt_of_the_waiting_ends_the_work() -> None:
    def hang_up(_number: int, _frame: object) -> None:
        raise HangUpError

    killed = threading.Event()
    waiting = threading.main_thread().ident
    assert waiting is not None

    def work() -> bool:
        signal.pthread_kill(waiting, signal.SIGUSR1)
        return killed.wait(DEADLINE_S)

    before = signal.signal(signal.SIGUSR1, hang_up)
    try:
        with pytest.raises(HangUpError):
            interruptible(work, killed.set)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert killed.is_set()


def test_a_signal_just_before_the_waiting_begins_ends_the_work() -> None:
    """Its handler is then due, but nothing wakes the thread that waits."""
    killed, in_time = threading.Event(), []

    def work() -> None:
        killed.wait(0.1)  # the other thread waits by now
        _thread.interrupt_main()  # marks the signal and interrupts no system call
        in_time.append(killed.wait(10))

    with pytest.raises(KeyboardInterrupt):
        interruptible(work, killed.set)
    assert in_time == [True]


def test_a_failure_of_the_work_itself_kills_nothing() -> None:
    def work() -> int:
        raise KeyError("its own")

    killed = threading.Event()
    with pytest.raises(KeyError, match="its own"):
        interruptible(work, killed.set)
    assert not killed.is_set()


def test_a_result_is_handed_back() -> None:
    assert interruptible(lambda: 7, lambda: None) == 7
