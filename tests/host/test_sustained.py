"""The search for the rate that an engine sustains, on engines of known capacity."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin import run
from streamjoin.bench import sustained
from streamjoin.cli import main, rate
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, MismatchError
from streamjoin.sequence import ResolvedJoin
from streamjoin.tuples import Pairs, Stream
from streamjoin.verify import Expected
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import CountWindow

TUPLES = 100_000


def job_of(tuples: int = TUPLES, last_us: int = 1_000_000) -> Job:
    ts = np.linspace(0, last_us, tuples // 2).astype(np.int64)
    r, s = (Stream({"k": np.arange(tuples // 2)}, ts, source) for source in ("r", "s"))
    return Job(r, s, Predicate.parse(on="k"), CountWindow(8), arrival="replay")


NO_PAIRS = Pairs(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint32))
NO_MATCHES = Expected(NO_PAIRS, "oracle")


def check(outcome: run.Outcome) -> None:
    join_of(outcome.job).verify(outcome, NO_MATCHES)


def join_of(job: Job) -> ResolvedJoin:
    return ResolvedJoin(catalog.get("kang"), job)


class Modelled:
    """Stands for ``run.run``: a queue in front of so many tuples a second."""

    def __init__(self, capacity: float, at_rest: float) -> None:
        self.capacity, self.at_rest = capacity, at_rest
        self.rates: list[float] = []

    def __call__(self, _engine: Any, job: Job, *_: Any, **__: Any) -> Any:
        if job.arrival == "instant":
            metrics = {"throughput_tuples_per_s": self.at_rest}
        else:
            arriving_s = (job.end_us - job.start_us) / 1e6 / job.speedup
            self.rates.append(job.tuples / arriving_s)
            wall_s = max(arriving_s, job.tuples / self.capacity) + 0.001
            p95 = 1e6 / max(1.0, self.capacity - self.rates[-1])
            metrics = {"wall_s": wall_s, "latency_us": {"p95": p95}, "latency_from": "arrival"}
        return run.Outcome(job, NO_PAIRS, metrics)


@pytest.mark.parametrize("at_rest", [30_000, 90_000, 100_000, 180_000])
@pytest.mark.parametrize("precision", [0.01, 0.05])
def test_the_rate_found_is_that_of_the_queue_whatever_was_measured_at_rest(
    monkeypatch: pytest.MonkeyPatch, at_rest: float, precision: float
) -> None:
    model = Modelled(90_000, at_rest)
    monkeypatch.setattr(run, "run", model)
    heard: list[sustained.Attempt] = []
    result = sustained.search(join_of(job_of()), precision, check, heard.append)
    assert result.attempts == tuple(heard)
    assert result.best is not None
    # A queue may have grown by 2 % of the arrivals in the end.
    maximum = 90_000 * (1 + sustained.GROWTH + 0.001)
    assert (1 - precision) * 90_000 <= result.best.rate_tuples_per_s <= maximum
    assert [each.rate_tuples_per_s for each in heard] == pytest.approx(model.rates)
    for each in heard:
        assert each.kept_up == (each.rate_tuples_per_s <= result.best.rate_tuples_per_s)


def test_an_engine_that_keeps_up_with_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run", Modelled(10, 100_000))
    result = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    assert result.best is None
    assert len(result.attempts) == sustained.MAX_RATES


def test_latencies_are_those_of_replays_at_shares_of_the_rate_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, checked = Modelled(90_000, 90_000), []
    monkeypatch.setattr(run, "run", model)
    join = join_of(job_of())
    found = sustained.search(join, 0.05, check, lambda _: None)
    assert found.best is not None
    searched = len(model.rates)
    loaded = sustained.under_loads(join, found, sustained.LOADS, checked.append).loaded
    rates = [load * found.best.rate_tuples_per_s for load in (0.1, 0.5, 0.9)]
    assert [each.rate_tuples_per_s for each in loaded] == pytest.approx(rates)
    assert model.rates[searched:] == pytest.approx(rates)
    assert len(checked) == 3
    latencies = [each.latency_us["p95"] for each in loaded]
    assert latencies == pytest.approx([1e6 / (90_000 - rate) for rate in rates])
    assert {each.latency_from for each in loaded} == {"arrival"}
    wrong = partial(join.verify, expected=Expected(Pairs.of([(0, 0)]), "oracle"))
    with pytest.raises(MismatchError):
        sustained.under_loads(join, found, sustained.LOADS, wrong)
    nothing = replace(found, attempts=())
    assert sustained.under_loads(join, nothing, sustained.LOADS, check) is nothing


class Compiling(Modelled):
    """A queue whose first run compiles before it does anything."""

    compiles_s = 30.0

    def __call__(self, engine: Any, job: Job, *given: Any, **named: Any) -> Any:
        outcome = super().__call__(engine, job, *given, **named)
        if job.arrival == "instant":
            took_s, self.compiles_s = self.compiles_s + job.tuples / self.at_rest, 0.0
            outcome.metrics["throughput_tuples_per_s"] = job.tuples / took_s
        return outcome


def test_the_search_begins_at_the_throughput_of_a_run_that_compiles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Compiling(90_000, 60_000)
    monkeypatch.setattr(run, "run", model)
    found = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    assert found.at_rest_tuples_per_s == pytest.approx(60_000)
    assert min(model.rates) == pytest.approx(60_000)
    assert found.best is not None
    assert 0.95 * 90_000 <= found.best.rate_tuples_per_s <= 93_000


class Disturbed(Modelled):
    """A queue that others hold up in some of the replays, counted from 0."""

    def __init__(self, capacity: float, at_rest: float, held_up: set[int]) -> None:
        super().__init__(capacity, at_rest)
        self.held_up = held_up

    def __call__(self, *given: Any, **named: Any) -> Any:
        number, capacity = len(self.rates), self.capacity
        self.capacity = capacity / 3 if number in self.held_up else capacity
        try:
            return super().__call__(*given, **named)
        finally:
            self.capacity = capacity


@pytest.mark.parametrize("held_up", [{0}, {1}, {2}, {3}, {0, 3}])
def test_a_replay_that_others_hold_up_does_not_lower_the_rate(
    monkeypatch: pytest.MonkeyPatch, held_up: set[int]
) -> None:
    model = Disturbed(90_000, 60_000, held_up)
    monkeypatch.setattr(run, "run", model)
    found = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    assert found.best is not None
    assert 0.95 * 90_000 <= found.best.rate_tuples_per_s <= 93_000
    by_rate = {rate: model.rates.count(rate) for rate in model.rates}
    assert set(by_rate.values()) <= {1, 2, 3}


def test_a_rate_is_refused_by_two_replays_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(rate: float, *, kept_up: bool) -> sustained.Attempt:
        return sustained.Attempt(rate, 1.0, 0.0, None, kept_up)

    model = Disturbed(90_000, 60_000, {0, 7})
    monkeypatch.setattr(run, "run", model)
    found = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    first = found.attempts[0].rate_tuples_per_s
    at_first = [each for each in found.attempts if each.rate_tuples_per_s == first]
    assert [each.kept_up for each in at_first] == [False, True, False]
    assert found.best is not None
    assert found.best.rate_tuples_per_s < 60_000, "what one of three kept up with is not kept"
    kept = (attempt(5.0, kept_up=False), attempt(5.0, kept_up=True), attempt(5.0, kept_up=True))
    assert sustained.is_kept_up(kept)
    assert replace(found, attempts=kept).best == kept[1]
    assert replace(found, attempts=kept[:2]).best is None


def test_every_replay_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run", Modelled(90_000, 100_000))
    replays: list[sustained.Attempt] = []
    join, expected = join_of(job_of()), Expected(Pairs.of([(0, 0)]), "oracle")
    compare = partial(join.verify, expected=expected)
    with pytest.raises(MismatchError, match=r"first missing \(r_row, s_row\) = \(0, 0\)$"):
        sustained.search(join, 0.05, compare, replays.append)
    assert replays == []


def test_what_cannot_be_searched_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(job: Job) -> None:
        sustained.search(join_of(job), 0.05, check, lambda _: None)

    at_rest = replace(job_of(), r=job_of(last_us=0).r, s=job_of(last_us=0).s)
    with pytest.raises(InputError, match=r"^r: all tuples arrive at once"):
        search(at_rest)


@pytest.mark.parametrize("at_rest", [150_000, 1e6])
def test_a_rate_beyond_what_the_tuples_can_show_is_sustained_at_least(
    monkeypatch: pytest.MonkeyPatch, at_rest: float
) -> None:
    model = Modelled(1e6, at_rest)
    monkeypatch.setattr(run, "run", model)
    highest = TUPLES / sustained.MIN_REPLAY_S
    found = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    assert found.best is not None
    assert found.at_least
    assert found.best.rate_tuples_per_s == pytest.approx(highest)
    assert max(model.rates) <= highest * (1 + 1e-9), "no replay is shorter"
    assert found.wanted >= sustained.MIN_REPLAY_S * at_rest
    more = sustained.search(join_of(job_of(found.wanted)), 0.05, check, lambda _: None)
    assert more.at_least == (at_rest < 1e6)
    slow = Modelled(90_000, 1e6)
    monkeypatch.setattr(run, "run", slow)
    below = sustained.search(join_of(job_of()), 0.05, check, lambda _: None)
    assert below.best is not None
    assert not below.at_least
    assert 0.95 * 90_000 <= below.best.rate_tuples_per_s <= 93_000


def test_the_verb_finds_a_rate_and_checks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    for name in ("r", "s"):
        ts = np.sort(rng.integers(0, 1_000_000, 400))
        pq.write_table(
            pa.table({"k": rng.integers(0, 20, 400), "ts": ts}), tmp_path / f"{name}.parquet"
        )
    description = {
        "format": 1,
        "name": "tiny",
        "kind": "equi",
        "r": {"path": "r.parquet", "rows": 400},
        "s": {"path": "s.parquet", "rows": 400},
        "predicate": {"on": ["k"]},
        "window": "count:10",
    }
    (tmp_path / "workload.json").write_text(json.dumps(description))
    monkeypatch.setattr(sustained, "MIN_REPLAY_S", 0.0)
    engines = ["kang", "ibwj-pim", "fpga-splitjoin"]
    words = ["rate", str(tmp_path), "--engines", ",".join(engines), "--threads", "1"]
    status = main([*words, "--precision", "0.5", "--loads", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert [one["engine"] for one in result] == engines
    for one in filter(lambda one: one["sustained"], result):
        assert [each["load"] for each in one["loaded"]] == [0.1, 0.5, 0.9]
        assert {each["latency_from"] for each in one["loaded"]} == {"arrival"}
    p99 = [each["latency_us"]["p99"] for each in result[2]["loaded"]]
    assert 0 < p99[0] <= p99[1] <= p99[2] < 1_000, "a design waits for no scheduler"
    assert status == (0 if all(one["sustained"] for one in result) else 1)
    assert all(one["attempts"] for one in result)

    assert [bool(one["clock_hz"]) for one in result] == [False, False, True]
    assert "simulated" in result[2]["clock_source"]

    searched = rate.search

    def interrupted(join: ResolvedJoin, *rest: Any) -> Any:
        if join.engine.name == "ibwj-pim":
            raise KeyboardInterrupt
        return searched(join, *rest)

    monkeypatch.setattr(rate, "search", interrupted)
    assert main([*words, "--precision", "0.5", "--json"]) == 130
    assert [one["engine"] for one in json.loads(capsys.readouterr().out)] == ["kang"]
    words[3] = "fpga-splitjoin"
    assert main([*words, "--loads"]) == 0
    out = capsys.readouterr().out
    assert "fpga-splitjoin" in out
    assert "p50, p99" in out
    assert all(f"at {load}" in out for load in ("10%", "50%", "90%"))
    assert "cycles at 100 MHz (assumed; simulated, not measured), without the transfer" in (
        " ".join(out.split())
    )
    assert main([*words, "--set", "cores=2", "segment_tuples=4", "--json"]) == 2
    assert "holds 8: raise the knobs cores or segment_tuples" in capsys.readouterr().err
    assert main([*words, "--set", "cores=2", "segment_tuples=8", "--json"]) == 0
    capsys.readouterr()
    assert main([*words, "--set", "ways=2"]) == 2
    assert capsys.readouterr().err == (
        "streamjoin: --set ways: none of fpga-splitjoin has this knob\n"
    )
    monkeypatch.setattr(sustained, "MIN_REPLAY_S", 0.5)
    words[3] = "kang,fpga-splitjoin"
    assert main([*words, "--loads"]) == 0
    both = capsys.readouterr()
    assert "at least 1.6 ktuples/s" in both.out
    assert "fpga-splitjoin" in both.out, "the results of the others are kept"
    assert "kang keeps up with all that 800 tuples allow" in both.err
    assert main([*words, "--precision", "2"]) == 2
    assert capsys.readouterr().err == "streamjoin: --precision must be 0.005 to 0.5, not 2.0\n"
