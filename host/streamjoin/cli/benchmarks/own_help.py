"""Help of one benchmark: ``streamjoin bench NAME --help`` shows the arguments that it takes."""

import argparse
from typing import Any

from streamjoin.bench.experiments import OTHERS, names
from streamjoin.bench.live import PREDICATES

EXAMPLES = """\
  streamjoin bench list
  streamjoin bench iawj-micro --size quick
  streamjoin bench calls --size full
  streamjoin bench live --predicates all
  streamjoin bench cpu-fpga
  streamjoin bench all --size quick
  streamjoin bench all --size quick --record benchmarks/results
  streamjoin bench claims --size full --out claims.md
  streamjoin bench regress benchmarks/results runs/bench
  streamjoin bench calls --out runs/before
  streamjoin bench regress runs/before runs/bench/calls-quick
"""

REGRESS = """\
regress names what is slower or faster than before, beyond the noise of the
rounds; its exit status is 1 if anything is slower or gone. It compares
experiments, calls and live, not cpu-fpga. To keep an earlier run, give it a
folder of its own with --out; that of an experiment is also kept by --record.
"""

CLAIMS = """\
claims judges what was published by the records of the runs in runs/bench,
without running anything.
"""

GOES_ON = "An interrupted run goes on where it was when the same command is typed again.\n"

EPILOG = f"""\
examples:
{EXAMPLES}
{REGRESS}{CLAIMS}{GOES_ON}
streamjoin bench NAME --help shows the flags of one benchmark alone.
"""

_AGAIN = "measure again what the folder has"

TAKEN: dict[str, dict[str, str | None]] = {
    "all": {
        "size": "of the points",
        "threads": "default: all processors",
        **dict.fromkeys(("data", "record", "force", "json")),
    },
    "calls": {
        "size": "quick joins a tenth of the rows",
        "threads": "default 1, and CPU time is shown; of more, wall time",
        "out": "default runs/bench/calls-SIZE",
        "force": _AGAIN,
        "json": None,
    },
    "claims": {"size": "of the runs", "out": "a page in Markdown", "json": "print JSON"},
    "cpu-fpga": {
        "size": "full measures more windows",
        "out": "default runs/bench/cpu-fpga-SIZE",
        "record": "store a small record, DIR/cpu-fpga-SIZE.json",
        "force": _AGAIN,
        "json": None,
    },
    "list": {"json": "print JSON"},
    "live": {
        "size": "full measures more calls",
        "threads": "default 1",
        "predicates": f"what to join by, all or of {', '.join(PREDICATES)}",
        "out": "default runs/bench/live-SIZE",
        "json": None,
    },
    "regress": {
        "records": "two records or runs of experiments, calls or live, or folders of them; the "
        "earlier one first",
        "json": "print JSON",
    },
}
"""Arguments of each benchmark that is no experiment, with their meaning where it is not that of the
common help."""

TAKEN_BY_EXPERIMENTS: dict[str, str | None] = {
    "size": None,
    "threads": "default: all processors",
    "out": "default runs/bench/NAME-SIZE",
    **dict.fromkeys(("data", "record", "force", "json")),
}

NOTES = {"claims": CLAIMS, "list": "", "live": "", "regress": REGRESS}
"""What stands below the examples, if it is not :data:`GOES_ON`."""


class Name(argparse.Action):
    """Keeps the name of a benchmark; from then on the parser's help is that of this one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _option: str | None = None,
    ) -> None:
        """Keep the name, and no help but that of the arguments that its benchmark takes."""
        setattr(namespace, self.dest, values)
        taken = {"help": None, **TAKEN.get(values, TAKEN_BY_EXPERIMENTS)}
        for action in parser._actions:
            of_it = action.dest in taken
            action.help = (taken[action.dest] or action.help) if of_it else argparse.SUPPRESS
        about = OTHERS.get(values, "One experiment, every figure checked, and its report")
        name = values if values in (*OTHERS, *names()) else "NAME"
        start = f"  streamjoin bench {name} "
        lines = [line for line in EXAMPLES.splitlines() if f"{line} ".startswith(start)]
        examples = "\n".join(lines or [f"{start}--size quick"])
        parser.prog, parser.description = f"{parser.prog} {name}", f"{about}."
        parser.epilog = f"examples:\n{examples}\n\n{NOTES.get(values, GOES_ON)}"
