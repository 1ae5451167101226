"""``streamjoin join``: one engine, one input."""

import argparse
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from streamjoin import verify
from streamjoin.cli import options, semistream
from streamjoin.cli.ends import Asked
from streamjoin.cli.terminal import duration, print_json, print_table, progress, say, si
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.outputs import STREAMED, SUFFIXES, write
from streamjoin.relations.source import source
from streamjoin.relations.stream import StoredStream
from streamjoin.run import Moment
from streamjoin.sequence import Request
from streamjoin.streams import ONLY_R
from streamjoin.tuples import Stream
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.durations import parse_lateness
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, parse_window
from streamjoin_common.storage import new_files

EPILOG = """\
example:
  streamjoin join --engine kang --r band/r.parquet --s band/s.parquet \\
      --band x=a:10:10 --band y=b:10:10 --window count:1024 \\
      --output pairs.parquet
  streamjoin join --engine ssbj --r sqlite:planes.db:planes \\
      --s flights.parquet --on tailnum
  streamjoin join --r planes.csv --s 'flights/*.parquet' --on tailnum \\
      --columns 's.*,r.model' --output - --format csv | head
"""


class JoinVerb:
    """Runs one engine on one input."""

    help = "One engine, one input: writes the result and the metrics."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        engine = parser.add_argument(
            "--engine", default="auto", help="a name of streamjoin engines, or auto (default)"
        )
        options.complete_engines(engine, "auto")
        options.add_inputs(parser)
        options.add_predicate(parser)
        parser.add_argument(
            "--window",
            default="all",
            help="all, tumbling:DUR, count:W[,W] or time:DUR[,DUR]; default all",
        )
        options.add_how(parser)
        options.add_arrivals(parser)
        parser.add_argument(
            "--lateness",
            metavar="DUR",
            help="put tuples that are at most this late in order, drop and count later ones; "
            "default: refuse arrival times that go back",
        )
        options.add_running(parser)
        parser.add_argument(
            "--output",
            metavar="FILE|-",
            help=f"where the result goes: a file {', '.join(SUFFIXES)}, or - for standard output; "
            "row numbers, or joined rows with --columns",
        )
        parser.add_argument(
            "--columns",
            action="append",
            metavar="COL[,...]",
            help="write joined rows with these columns: r.a, s.b, a where one side has it, r.*, "
            "s.*, or '*' for all",
        )
        parser.add_argument(
            "--format", choices=STREAMED, help="what goes to standard output; default arrow (IPC)"
        )
        parser.add_argument("--metrics", type=Path, metavar="JSON", help="where the metrics go")
        parser.add_argument("--verify", action="store_true", help="hold against the oracle")
        parser.add_argument("--json", action="store_true", help="print the metrics as JSON")
        parser.add_argument(
            "--quiet",
            action="store_true",
            help="print no metrics; with --output - they go to standard error, and to no terminal",
        )

    def run(self, args: argparse.Namespace) -> int:
        """Join, verify if asked, write, print."""
        predicate, window = options.predicate(args), parse_window(args.window)
        knobs = options.knobs(args)
        if args.engine != "auto":
            catalog.get(args.engine)  # a wrong name is reported before anything is read
        asked = Asked.of(args)
        r_source, s_source = source(args.r), source(args.s)
        if not isinstance(s_source, Path):
            raise InputError(f"--s {s_source.text}: {ONLY_R}")
        targets = asked.targets(r_source, s_source)
        request = Request(
            predicate=predicate,
            window=window,
            arrivals=Arrivals.parse(args.ts, args.ts_unit, window),
            lateness_us=parse_lateness(args.lateness),
            threads=args.threads,
            arrival=args.arrival,
            speedup=args.speedup,
            order=args.order,
            backend=args.backend,
            max_pairs=args.max_pairs,
            how=parse_how(args.how),
        )
        if args.speedup != 1.0 and args.arrival != "replay":
            raise InputError("--speedup is for a replay: add --arrival replay, or drop it")
        began = Moment.now()
        job = request.read(*asked.inputs(request, r_source, s_source))
        result = asked.result(job)
        _say_late(job.r, job.s)
        resolved = request.resolve(args.engine, job, knobs, will_verify=args.verify)
        _say_arrival(resolved.job)
        with progress(f"{resolved.engine.name} on {job.tuples} tuples") as on_progress:
            outcome = resolved.run(on_progress, say, began=began)
        if args.verify:
            with progress("oracle") as on_progress:
                expected = verify.expected(resolved.job, on_progress)
            resolved.verify(outcome, expected)
            outcome.metrics["verified_by"] = expected.oracle
        if asked.to_stdout:
            write(result(outcome), sys.stdout.buffer, asked.suffix)
            sys.stdout.flush()
        with new_files(targets, parents=True) as drafts:
            for target, draft in zip(targets, drafts, strict=True):
                if target == asked.output:
                    write(result(outcome), draft, asked.suffix)
                else:
                    draft.write_text(json.dumps(outcome.metrics, indent=2) + "\n")
            with redirect_stdout(sys.stderr if asked.to_stdout else sys.stdout):
                if args.json:
                    print_json(outcome.metrics)
                elif asked.shows_metrics:
                    _print(outcome.metrics)
                sys.stdout.flush()  # a table that cannot be printed leaves no files either
        return 0


def _say_late(*streams: Stream) -> None:
    for stream in streams:
        if stream.late:
            say(f"{stream.source}: {stream.late} tuples arrived too late and are dropped")


def _say_arrival(job: Job) -> None:
    at_rest = [
        each.source for each in (job.r, job.s) if each.rows and each.in_memory and not each.ts.any()
    ]
    stored = isinstance(job.r, StoredStream) and job.r.store.ts_column is None
    if stored and isinstance(job.window, TumblingWindow):
        say(f"{job.r.source} has no arrival times: all its rows lie in the window from 0")
    if len(at_rest) == 1 and job.r.rows and job.s.rows:
        say(f"{at_rest[0]} has no arrival times: all its rows arrive at 0")
    if len(at_rest) == 2 and isinstance(job.window, TimeWindow | TumblingWindow):
        say(f"there are no arrival times but 0: every tuple lies in one window {job.window.text}")
    if job.arrival != "replay":
        return
    if job.start_us == job.end_us:
        say("there is nothing to replay: all tuples arrive at once")
        return
    arriving_us = (job.end_us - job.start_us) / job.speedup
    faster = "; --speedup X makes it X times faster" if job.speedup == 1 else ""
    say(f"the replay takes {duration(arriving_us)}{faster}")


def compiled(kernels: object) -> str:
    """Say what a first call does beside joining."""
    if kernels == 1:
        return "; 1 kernel was compiled in it, which is kept"
    return f"; {kernels} kernels were compiled in it, which are kept" if kernels else ""


def _print(metrics: dict[str, object]) -> None:
    latency = metrics["latency_us"]
    assert isinstance(latency, dict)
    seconds, throughput = metrics["wall_s"], metrics["throughput_tuples_per_s"]
    whole_s = metrics["total_s"]
    assert isinstance(seconds, float)
    assert isinstance(whole_s, float)
    clocked = "cycles" in metrics
    rows = [
        ["engine", str(metrics["engine"])],
        ["predicate", str(metrics["predicate"])],
        ["window", str(metrics["window"])],
        *([["how", str(metrics["how"])]] if metrics["how"] != "inner" else []),
        ["tuples", f"{metrics['n_r']} x {metrics['n_s']}"],
        ["pairs", str(metrics["pairs"])],
        ["digest", str(metrics["digest"])],
        ["whole call", duration(whole_s * 1e6) + compiled(metrics["kernels_compiled"])],
        [
            "time to simulate" if metrics["backend"] == "model" else "algorithm's part",
            duration(seconds * 1e6),
        ],
        [
            "throughput at that clock" if clocked else "throughput of that part",
            si(throughput if isinstance(throughput, float) else None, "tuples/s"),
        ],
        ["memory", _memory(metrics)],
        [
            f"p50, p95, max latency from {metrics['latency_from']}",
            ", ".join(duration(latency[q]) for q in ("p50", "p95", "max")),
        ],
    ]
    if clocked:
        clock_hz = metrics["clock_hz"]
        assert isinstance(clock_hz, float)
        clock = f"{clock_hz / 1e6:g} MHz, {metrics['clock_source']}"
        rows += [["cycles", str(metrics["cycles"])], ["clock", clock]]
    if "semi_stream" in metrics:
        rows += semistream.metric_rows(metrics["semi_stream"])
    counters = metrics["counters"]
    if isinstance(counters, dict):
        rows += [[name.replace("_", " "), si(count)] for name, count in counters.items()]
    if "verified_by" in metrics:
        rows.append(["verified", f"equal to {metrics['verified_by']}'s result"])
    print_table(["metric", "value"], rows)


def _memory(metrics: dict[str, object]) -> str:
    peak, held = metrics["peak_bytes"], metrics["structure_bytes"]
    parts = [
        f"{count / 2**20:.0f} MiB {what}"
        for count, what in ((peak, "at the peak"), (held, "of it the engine's own structures"))
        if isinstance(count, int)
    ]
    return ", ".join(parts) or "-"


VERB = JoinVerb()
