"""Values that a shell completes for a flag, looked up only when it asks for them."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

Values = Callable[[argparse.Namespace], Iterable[str]]


def complete(
    action: argparse.Action, values: Values, *, listed: bool = False, files: bool = False
) -> None:
    """Let a shell complete a flag's or an argument's values.

    Parameters
    ----------
    action : argparse.Action
        What ``add_argument`` returned.
    values : callable
        From what is typed so far to the values.
    listed : bool
        Whether several values are typed with commas between them.
    files : bool
        Whether paths are values too.
    """

    def completer(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
        before, comma, _last = prefix.rpartition(",") if listed else ("", "", prefix)
        taken = set(before.split(","))
        choices = [before + comma + value for value in values(parsed_args) if value not in taken]
        if files:
            choices += _paths(prefix)
        return choices

    action.completer = completer  # type: ignore[attr-defined]  # as argcomplete has it


def _paths(prefix: str) -> list[str]:
    """Return the paths that begin as typed, folders with a slash behind them."""
    folder, slash, start = prefix.rpartition("/")
    try:
        entries = sorted(Path(f"{folder}{slash}" or ".").iterdir())
    except OSError:
        return []
    shown = [each for each in entries if start or not each.name.startswith(".")]
    return [
        f"{folder}{slash}{each.name}{'/' if each.is_dir() else ''}"
        for each in shown
        if each.name.startswith(start)
    ]
