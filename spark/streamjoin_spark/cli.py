"""The verbs ``streamjoin spark-join`` and ``streamjoin spark-stream``.

Importing this module is cheap; Spark and Arrow are imported when something is to be done.
"""

import argparse
import contextlib
import json
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.installed.completing import complete
from streamjoin_common.language.arrivals import UNITS
from streamjoin_common.language.kinds import KINDS

if TYPE_CHECKING:
    from streamjoin_datagen.session import Session
    from streamjoin_spark.batch.inputs import Inputs

JOIN_EPILOG = """\
example:
  streamjoin spark-join --r runs/big/r.parquet --s runs/big/s.parquet --on k \\
      --window tumbling:1s --out runs/pairs
"""
STREAM_EPILOG = """\
example (Parquet files with columns row, ts, k are moved into folders r and s):
  streamjoin spark-stream --r in/r --s in/s --on k --window time:10s \\
      --delay 2s --out runs/pairs --checkpoint runs/checkpoint
"""
POLL_S = 0.5


def add_inputs(parser: argparse.ArgumentParser, files: str) -> None:
    """Add the flags that say what is joined, described by ``files``, and where rows are written."""
    add = parser.add_argument
    add("--r", required=True, type=Path, metavar="PATH", help=f"R: {files}")
    add("--s", required=True, type=Path, metavar="PATH", help=f"S: {files}")
    add("--on", action="append", metavar="COL[=COL][,...]", help="equal columns: k or rk=sk")
    add(
        "--band",
        action="append",
        metavar="COL=COL:LO:HI",
        help="x=a:10:10 means a-10 <= x <= a+10; may be repeated",
    )
    add("--out", required=True, type=Path, metavar="DIR", help="folder for the pairs")
    add(
        "--columns",
        metavar="r.COL,s.COL",
        help="write joined rows with these columns, or * for all, instead of row numbers",
    )
    how = add("--how", default="inner", metavar="KIND", help=f"{', '.join(KINDS)}; default inner")
    complete(how, lambda _: KINDS)
    add("--ts-unit", choices=UNITS, help="unit of integer arrival times; default us")


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where Spark runs."""
    add = parser.add_argument
    add("--threads", type=int, metavar="T", help="tasks at a time; every core by default")
    add("--master", metavar="URL", help="Spark URL, such as local[4] or spark://HOST:7077")
    add("--memory", default="2g", metavar="M", help="Java's heap of the driver; default 2g")
    add(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated",
    )


def add_join(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a join of files."""
    from streamjoin_spark.batch.plan import PARTITION_TUPLES

    add_inputs(parser, "a Parquet file or folder, or a pattern as 'a/*.parquet'")
    add = parser.add_argument
    add("--force", action="store_true", help="replace an earlier result in the folder of --out")
    add("--window", default="all", help="all, tumbling:DUR or time:DUR[,DUR]; default all")
    add("--ts", metavar="COL[=COL]", help="the arrival column, as ts or sent=received; default ts")
    add(
        "--path",
        default="auto",
        choices=("auto", "files", "shuffle"),
        help="tasks read their part of the files, or Spark's shuffle brings them the rows",
    )
    add(
        "--partition-tuples",
        type=int,
        default=PARTITION_TUPLES,
        metavar="N",
        help=f"tuples of both sides that a task should have; default {PARTITION_TUPLES}",
    )


def asked(args: argparse.Namespace) -> "Inputs":
    """Open the files as the flags of :func:`add_join` say, without Spark."""
    from streamjoin_spark.batch.inputs import opened_inputs

    return opened_inputs(
        args.r,
        args.s,
        on=args.on,
        band=args.band,
        window=args.window,
        ts=args.ts,
        ts_unit=args.ts_unit,
        row="row",
        path=args.path,
        per_task=args.partition_tuples,
        how=args.how,
        columns=args.columns,
    )


class SparkJoinVerb:
    """Joins files of any size on Spark."""

    help = "Joins files of any size on Spark: pairs as part files with a manifest."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = JOIN_EPILOG
        add_join(parser)
        add_session(parser)
        parser.add_argument("--json", action="store_true", help="print the manifest as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Join, write, print."""
        from streamjoin_spark.batch.join import planned
        from streamjoin_spark.batch.parts import check_out

        check_out(args.out, force=args.force)
        inputs = asked(args)  # mistakes are reported before Spark starts, which takes ten seconds

        def work(session: "Session") -> dict[str, Any]:
            return planned(session.spark, inputs).write(args.out, force=args.force)

        with _session(args) as session, _progress(session, "joining"):
            manifest = session.run(lambda: work(session))
        shown = {name: value for name, value in manifest.items() if name != "parts"}
        _print({**shown, "parts": len(manifest["parts"]), "out": str(args.out)}, args.json)
        return 0


class SparkStreamVerb:
    """Joins two growing folders of files."""

    help = "Joins two folders of files as they grow, exactly once across restarts."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = STREAM_EPILOG
        add_inputs(parser, "a folder of Parquet files, with at least one")
        add = parser.add_argument
        add("--window", required=True, help="tumbling:DUR or time:DUR[,DUR]")
        add("--ts", metavar="COL[=COL]", help="the arrival column, as ts or sent=received")
        add("--row", default="row", metavar="COL", help="the column of row numbers; default row")
        add("--checkpoint", required=True, type=Path, metavar="DIR", help="folder of the state")
        add("--delay", metavar="DUR", help="how late a tuple may arrive; default 0")
        add("--classes", type=int, default=8, metavar="N", help="tasks of each batch; default 8")
        add("--max-files", type=int, metavar="N", help="maximum files of each side in a batch")
        add("--follow", action="store_true", help="wait for more files, until interrupted")
        add(
            "--end",
            action="store_true",
            help="the folders are complete: report what still waits for a partner",
        )
        add_session(parser)
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run the query until all is done, or until interrupted; print the outcome."""
        from streamjoin.errors import InputError
        from streamjoin_common.errors import InputWarning
        from streamjoin_common.language.durations import parse_option
        from streamjoin_spark.streaming.query import end_streams, opened_folders
        from streamjoin_spark.streaming.state import FOLDER, end_of, last_record

        folders: dict[str, Any] = {
            name: getattr(args, name)
            for name in ("out", "checkpoint", "on", "band", "window", "ts", "ts_unit", "row")
        } | {"columns": args.columns, "how": args.how}
        if args.end and args.follow:
            raise InputError("--end is for complete folders, --follow waits for more: drop one")
        delay_us = 0 if args.delay is None else parse_option("delay", args.delay)
        for flag, number in (("--classes", args.classes), ("--max-files", args.max_files)):
            if number is not None and number < 1:
                raise InputError(f"{flag} must be at least 1, not {number}")
        # Mistakes are reported before Spark starts, which takes ten seconds.
        opened_folders(args.r, args.s, **folders, ending=args.end)
        state = args.checkpoint / FOLDER
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # said already
            if end_of(state) is None:
                with _session(args) as session:
                    session.run(lambda: self._run(session, args, folders, delay_us))
            if args.end:
                end_streams(args.r, args.s, **folders, heard=_say_batch)
        record = last_record(state)
        names = ("batch", "pairs_so_far", "late_so_far", "watermark_us")
        _print({**{name: record[name] for name in names}, "out": str(args.out)}, args.json)
        return 0

    @staticmethod
    def _run(
        session: "Session", args: argparse.Namespace, folders: dict[str, Any], delay_us: int
    ) -> None:
        from streamjoin_spark.streaming.query import stream_join_files

        writer = stream_join_files(
            session.spark,
            args.r,
            args.s,
            **folders,
            delay_us=delay_us,
            classes=args.classes,
            most_files=args.max_files,
            heard=_say_batch,
        )
        query = (writer if args.follow else writer.trigger(availableNow=True)).start()
        if args.follow:
            print("waiting for files; Ctrl-C ends it", file=sys.stderr, flush=True)
        _finished(query)


def _say_batch(record: dict[str, Any]) -> None:
    late = f", {record['late']:,} late tuples dropped" if record["late"] else ""
    rows = "pairs" if record["how"] == "inner" else "rows"
    print(
        f"batch {record['batch']}: {record['pairs']:,} {rows}, {record['pairs_so_far']:,} so far; "
        f"{record['kept']:,} tuples kept{late}",
        file=sys.stderr,
        flush=True,
    )


def _finished(query: Any) -> None:
    """Wait for a query.

    Raises
    ------
    InputError, EngineError
        If it failed, in a sentence.
    """
    from streamjoin_spark.batch.failures import explained

    try:
        query.awaitTermination()
    except Exception as error:  # PySpark's and Py4J's classes have no common base
        raise explained(error) from error


@contextlib.contextmanager
def _session(args: argparse.Namespace) -> Iterator["Session"]:
    from streamjoin.errors import InputError
    from streamjoin_datagen.session import check_installed, spark_session

    check_installed()
    if args.threads is not None and args.threads < 1:
        raise InputError(f"--threads must be at least 1, not {args.threads}")
    wrong = next((setting for setting in args.conf if not setting.partition("=")[2]), None)
    if wrong is not None:
        raise InputError(f"--conf takes KEY=VALUE, not {wrong!r}")
    settings = dict(setting.split("=", 1) for setting in args.conf)
    print("starting Spark", file=sys.stderr, flush=True)
    with spark_session(
        args.threads, memory=args.memory, quick=False, spark_url=args.master, settings=settings
    ) as session:
        yield session


@contextlib.contextmanager
def _progress(session: "Session", what: str) -> Iterator[None]:
    """Show how many of Spark's tasks are done, for as long as the block runs."""
    from streamjoin.cli.terminal import progress

    done = threading.Event()
    tracker = session.spark.sparkContext.statusTracker()

    def watch(show: Any) -> None:
        while not done.wait(POLL_S):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                show(
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                )

    with progress(what) as show:
        watcher = threading.Thread(target=watch, args=(show,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join(timeout=10 * POLL_S)


def _print(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, indent=2))
        return
    from streamjoin.cli.terminal import print_table

    print_table(["result", "value"], [[name, str(value)] for name, value in result.items()])


JOIN = SparkJoinVerb()
STREAM = SparkStreamVerb()
