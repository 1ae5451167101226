"""The command ``streamjoin``: verbs, exit codes and one-sentence errors.

Other distributions of this project add verbs through the entry-point group
``streamjoin.verbs``; a verb is an object with ``help``, ``configure(parser)`` and
``run(args) -> exit status``.
"""

import argparse
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import TracebackType
from typing import Any, NoReturn

from streamjoin_common.errors import InputWarning
from streamjoin_common.printing import printable
from streamjoin_common.redaction import redacted
from streamjoin_common.screen import columns, fold, for_screen
from streamjoin_common.spelling import as_flags
from streamjoin_common.suggestions import did_you_mean

OWN_VERBS = {
    "join": "one engine, one input: writes the result and the metrics",
    "compare": "several engines side by side, each checked, one report",
    "bench": "published experiments: every figure checked, resumable, one report",
    "rate": "the highest arrival rate that engines sustain without a growing queue",
    "advise": "names the engine that suits a workload, with reasons",
    "engines": "every engine with its capabilities, and whether it is usable here",
    "stats": "what a workload's data are like: rates, keys, skew",
    "report": "records in, one self-contained page out",
    "doctor": "what works on this machine, and what to type for the rest",
    "completion": "lets a shell complete verbs, flags and their values",
}
OTHER_VERBS = {
    "data": "generates or imports a workload with Spark",
    "spark-join": "joins files of any size on Spark, one machine or a cluster",
    "spark-stream": "joins streams of files on Spark as they arrive, exactly once",
    "hw": "the hardware designs: simulate, animate, synthesize, prove, build bitstreams",
}

EXTRAS = {"hw": "hw", "data": "datagen", "spark-join": "datagen", "spark-stream": "datagen"}
"""What else has to be installed for a verb."""

PACKAGES = (
    "streamjoin",
    "streamjoin_common",
    "streamjoin_datagen",
    "streamjoin_hw",
    "streamjoin_spark",
)
"""Of this project: that one of their modules is missing is no user's mistake."""

FLAGS_OF_JOIN = ("--r", "--s")
"""Flags for files, which are not given to verbs that take a workload's folder."""

EPILOG = """\
example:
  streamjoin data band --param duration_s=2 --seed 7 --out runs/workloads/band
  streamjoin compare runs/workloads/band --engines kang,splitjoin \\
      --out runs/first
"""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes a flag's meaning and, where the words do not say it, its default."""

    def _get_help_string(self, action: argparse.Action) -> str:
        words = action.help or ""
        unsaid = action.nargs == 0 or action.default in (None, False, argparse.SUPPRESS, [], "")
        return words if unsaid or "default" in words else f"{words}; default %(default)s"

    def meaning(self, action: argparse.Action) -> str:
        """Return what help says of a flag, in one line."""
        return " ".join(self._expand_help(action).split()) if action.help else ""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, with what was probably meant."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{"allow_abbrev": False, **named})  # --r is not --rounds
        self.set_defaults(parser=self)  # that of the verb, after parsing
        self._given: list[str] | None = None

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; a flag that is not known is an error of the verb's own parser."""
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known

    def _get_formatter(self) -> HelpFormatter:
        return HelpFormatter(prog=self.prog)  # whatever a verb's own parser would use

    def format_help(self) -> str:
        """Return the help, the description folded where the screen is narrow."""
        given = self.description or ""
        self.description = "\n".join("\n".join(fold(line, columns())) for line in given.split("\n"))
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what was given is kept for an error."""
        self._given = args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the sentence and exit with 2; a verb without anything shows its help first."""
        lacking = message.removeprefix("the following arguments are required: ")
        unknown = self._unknown_flag()
        if lacking != message and unknown:
            message = f"unrecognized arguments: {unknown}"  # it may be what is lacking
        elif lacking != message:
            verb = "are" if ", " in lacking else "is"
            message = f"{' and '.join(lacking.rsplit(', ', 1))} {verb} needed"
            if not self._given:
                self.print_help(sys.stderr)
                _complain(message, self.prog)
                sys.exit(2)
        _complain(f"{message}{self._meant(message)}; see {self.prog} --help", self.prog)
        sys.exit(2)

    def _unknown_flag(self) -> str | None:
        """Return the first flag of a verb that it does not have."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        words = [word.partition("=")[0] for word in self._given or () if word.startswith("--")]
        return next((word for word in words if word not in flags), None)

    def _meant(self, message: str) -> str:
        """Say what was probably meant by an unknown verb, value or flag."""
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            return did_you_mean(choice[1], re.findall(r"[^\s,']+", choice[2]))
        unknown = re.search(r"unrecognized arguments: (--[^\s=]+)", message)
        if unknown and unknown[1] in FLAGS_OF_JOIN:
            return f": {' and '.join(FLAGS_OF_JOIN)} are flags of join and advise"
        flags = [flag for action in self._actions for flag in action.option_strings]
        return did_you_mean(unknown[1], flags) if unknown else ""


MAX_WORD_CHARACTERS = 600
"""Maximum length of a word in a sentence; of a longer one the beginning is shown."""

MAX_SENTENCE_CHARACTERS = 10_000
"""Maximum length of a sentence; of a longer one the words that fit are shown."""


def _complain(sentence: str, who: str = "streamjoin", keep: str = "") -> None:
    """Print a sentence to stderr, without the secrets that an argument or a library may hold."""
    if len(sentence) > MAX_SENTENCE_CHARACTERS:
        # Whole words: half an address could hide from the patterns that find passwords.
        words = sentence[:MAX_SENTENCE_CHARACTERS].rpartition(" ")[0]
        sentence = f"{words} ... ({len(sentence)} characters)"
    shown = re.sub(
        rf"\S{{{MAX_WORD_CHARACTERS},}}",
        lambda word: f"{word[0][:100]}... ({len(word[0])} characters)",
        redacted(sentence),
    )
    sys.stderr.write(for_screen(f"{who}: {printable(shown, keep)}", sys.stderr) + "\n")


def _give_up_stdout() -> None:
    """Drop what stdout still holds if it cannot be written: Python would fail on it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _TerminatedError(BaseException):
    """SIGTERM, as an exception: what is half done is cleaned up on the way out."""


AGAIN_S = 0.05
"""Seconds after which a signal is repeated whose exception was lost."""


def _terminate(_number: int, _frame: object) -> None:
    handled = sys.exc_info()[1]
    while handled is not None:
        if isinstance(handled, _TerminatedError):
            return  # the clean-up is not cut short
        handled = handled.__context__
    raise _TerminatedError


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise, as SIGINT does, for the length of a command.

    What a handler raises is lost where Python happens to be in a destructor or a library's
    callback: then the signal is repeated.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    main = threading.get_ident()

    def repeat(lost: "sys.UnraisableHookArgs") -> None:
        number = {_TerminatedError: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(
            lost.exc_type
        )
        if number is None:
            show(lost)
            return
        left = False

        def send() -> None:
            time.sleep(AGAIN_S)
            while not left:  # what is raised inside this hook would be lost again
                time.sleep(AGAIN_S)
            signal.pthread_kill(main, number)

        try:
            threading.Thread(target=send, daemon=True).start()
        finally:
            left = True

    before = signal.signal(signal.SIGTERM, _terminate)
    show, sys.unraisablehook = sys.unraisablehook, repeat
    try:
        yield
    finally:
        sys.unraisablehook = show
        signal.signal(signal.SIGTERM, before)


class _Version(argparse.Action):
    """Prints the version; looking it up costs, so only when asked."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:  # noqa: A002  (argparse's name)
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, *_: object) -> NoReturn:
        from importlib.metadata import version

        sys.stdout.write(f"streamjoin {version('streamjoin')}\n")
        sys.exit(0)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what can follow
        import_module("streamjoin.cli.installation.completion").answer(_parser)
    arguments = sys.argv[1:] if argv is None else argv
    debug = "--debug" in arguments
    try:
        with _terminable(), as_flags():
            return _dispatch([argument for argument in arguments if argument != "--debug"])
    except BrokenPipeError:
        _give_up_stdout()  # whoever read our output has seen enough
        return 0
    except KeyboardInterrupt:
        warnings.simplefilter("ignore")  # of what was half built, as it is destroyed
        _complain("interrupted; nothing unfinished was left behind")
        return 130
    except _TerminatedError:
        warnings.simplefilter("ignore")
        _complain("terminated; nothing unfinished was left behind")
        return 143
    except Exception as error:
        known = _known(error, _verb(arguments))
        if debug or known is None:  # what is no user's mistake is ours: show where
            sys.excepthook = _show_redacted
            raise
        sentence, status = known
        # A user's mistake is one sentence; what a tool says of a failed run may have lines.
        _complain(sentence, keep="" if status == 2 else "\n")
        if isinstance(error, OSError):
            _give_up_stdout()
        return status


def _known(error: Exception, verb: str | None) -> tuple[str, int] | None:
    """Sentence and exit status for an error that a user can do something about, or None."""
    status = getattr(error, "exit_status", None)
    if status is not None:
        return str(error), int(status)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if not package or package in PACKAGES:
            return None
        if package in sys.stdlib_module_names:
            return f"{package} is a module of Python that this Python does not have: repair it", 1
        from streamjoin_common.installed.checks import not_installed

        extra = EXTRAS.get(verb or "", "")
        return not_installed(package, needed_by=verb or "streamjoin", extra=extra), 2
    if isinstance(error, MemoryError):
        detail = f" ({' '.join(str(error).split())[:200]})" if str(error) else ""
        return f"the memory is exhausted{detail}: join a part of the input at a time", 1
    return (str(error), 1) if isinstance(error, OSError) else None


def _show_redacted(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a traceback without secrets."""
    import traceback

    sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))


def _verb(arguments: list[str]) -> str | None:
    return next((word for word in arguments if not word.startswith("-")), None)


def _dispatch(arguments: list[str]) -> int:
    args = parse(arguments)
    from streamjoin import memory

    memory.keep_one_arena()
    with _hints():
        return int(args.run(args))


@contextmanager
def _hints() -> Iterator[None]:
    """Show warnings about the input as a sentence on stderr."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def one_sentence(message: Any, category: Any, *rest: Any, **named: Any) -> None:
            if issubclass(category, InputWarning):
                _complain(f"warning: {message}")
            else:
                show(message, category, *rest, **named)

        warnings.simplefilter("always", InputWarning)
        # What is used of pandas works in 3; Spark's tests of this project pass with it.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        warnings.showwarning = one_sentence
        yield


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read a command line; ``run`` of the result does what it says."""
    parser = _parser(arguments)
    if not arguments:
        parser.print_help()
        sys.exit(0)
    return parser.parse_args(arguments)  # type: ignore[no-any-return]  # as argparse has it


def _parser(arguments: list[str]) -> Parser:
    """Make the parser of a command line, with the flags of its verb."""
    parser = Parser(
        prog="streamjoin",
        description="Stream joins on multicore CPUs and FPGAs that give the same exact answer.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action=_Version, help="show the version")
    parser.add_argument("--debug", action="store_true", help="show a traceback with an error")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    chosen = _verb(arguments)
    for name, summary in {**OWN_VERBS, **OTHER_VERBS}.items():
        sub = verbs.add_parser(name, help=summary)
        if name == chosen:  # only the chosen verb's module is imported
            verb = _load(name)
            sub.description = verb.help
            verb.configure(sub)
            sub.set_defaults(run=verb.run)
    return parser


def _load(name: str) -> Any:
    if name in OWN_VERBS:
        folder = "installation." if name in ("doctor", "completion") else ""
        return import_module(f"streamjoin.cli.{folder}{name}").VERB
    entries: tuple[EntryPoint, ...] = tuple(entry_points(group="streamjoin.verbs", name=name))
    try:
        return entries[0].load()
    except (IndexError, ModuleNotFoundError) as error:
        package = (getattr(error, "name", None) or "streamjoin").partition(".")[0]
        if package not in PACKAGES:
            raise  # as when it is missed later
        from streamjoin_common.installed.checks import not_installed

        _complain(not_installed(name, extra=EXTRAS[name]))
        sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
