"""Another name of :mod:`streamjoin_common.language.windows`, and of its durations."""

from streamjoin_common.language.durations import MAX_US as MOST
from streamjoin_common.language.durations import format_duration, parse_duration
from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)

__all__ = [
    "MOST",
    "AllWindow",
    "CountWindow",
    "TimeWindow",
    "TumblingWindow",
    "Window",
    "format_duration",
    "parse_duration",
    "parse_window",
]
