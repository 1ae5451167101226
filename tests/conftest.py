"""What all tests need of their process."""

import signal


def pytest_configure() -> None:
    """Make SIGINT what it is in the foreground: a shell lets background jobs ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
