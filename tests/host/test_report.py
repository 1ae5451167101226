"""The report's parts: form of the records, verdicts, numbers, charts, comparison."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.host import report_samples as samples

from streamjoin.cli import main
from streamjoin.errors import StreamJoinError
from streamjoin.report import RecordsError, read_records, units, write_report
from streamjoin.report.records import check_run
from streamjoin.report.tables import engine_row
from streamjoin_common.installed.environment import _java_version
from streamjoin_common.storage import StorageError


def write(folder, run):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "records.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


# ---- reading ----------------------------------------------------------------------------


def test_a_run_folder_and_its_file_read_the_same(tmp_path):
    folder = write(tmp_path / "small", samples.mixed_run())
    assert read_records(folder) == read_records(folder / "records.json") == samples.mixed_run()


def set_at(run, path, value):
    *outer, last = path
    place = run
    for step in outer:
        place = place[step]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("format",), 2, "format must be 1, not 2"),
        (("title",), KeyError, "title must be a string, not null"),
        (("records",), KeyError, "records must be a list, not null"),
        (("environment",), [], "environment must be an object, not []"),
        (
            ("environment", "cores"),
            -1,
            "environment.cores must be an integer from 0, not -1",
        ),
        (
            ("environment", "packages", "numpy"),
            2,
            "environment.packages.numpy must be a string, not 2",
        ),
        (("workloads", 0, "n_r"), 1.5, "workloads[0].n_r must be an integer from 0, not 1.5"),
        (
            ("records", 1, "workload"),
            "elsewhere",
            'records[1].workload must be the name of one of the workloads, not "elsewhere"',
        ),
        (
            ("records", 0, "status"),
            "good",
            'records[0].status must be one of ok, wrong, failed, not "good"',
        ),
        (("records", 0, "status"), "wrong", "records[0].error must be a string, not null"),
        (("records", 0, "checked"), "yes", 'records[0].checked must be true or false, not "yes"'),
        (("records", 0, "checked"), 1, "records[0].checked must be true or false, not 1"),
        (("records", 0, "pairs"), True, "records[0].pairs must be an integer from 0, not true"),
        (
            ("records", 0, "wall_s", "median"),
            "0.1",
            'records[0].wall_s.median must be a finite number from 0, not "0.1"',
        ),
        (
            ("records", 0, "latency_us", "p99"),
            -3.0,
            "records[0].latency_us.p99 must be a finite number from 0, not -3.0",
        ),
        (
            ("records", 0, "progress", 1),
            [1.5, 2],
            "records[0].progress[1] must be [share from 0 to 1, milliseconds from 0], not [1.5, 2]",
        ),
        (
            ("records", 0, "phases_ms", "probe"),
            [],
            "records[0].phases_ms.probe must be a finite number from 0, not []",
        ),
        (
            ("records", 2, "clock_source"),
            None,
            "records[2].clock_source must be a string, not null",
        ),
        (("records", 2, "clock_hz"), 0, "records[2].clock_hz must be above 0, not 0"),
        (
            ("workloads", 0, "arrival"),
            "slowly",
            'workloads[0].arrival must be one of instant, replay, not "slowly"',
        ),
        (
            ("workloads", 0, "speedup"),
            "10",
            'workloads[0].speedup must be a finite number from 0, not "10"',
        ),
        (
            ("records", 0, "status"),
            None,
            "records[0].status must be one of ok, wrong, failed, not null",
        ),
        (("records", 2), "text", 'records[2] must be an object, not "text"'),
    ],
)
def test_a_field_of_the_wrong_form_is_named_in_one_sentence(tmp_path, path, value, sentence):
    run = samples.run()
    set_at(run, path, value)
    folder = write(tmp_path, run)
    expected = f"{folder / 'records.json'}: {sentence}"
    with pytest.raises(RecordsError, match=f"^{re.escape(expected)}$"):
        read_records(folder)


def test_two_workloads_of_one_name_are_refused():
    run = samples.run(workloads=[samples.workload(), samples.workload()])
    sentence = (
        'run: workloads[1].name must be a name that no other workload has, not "band-uniform"'
    )
    with pytest.raises(RecordsError, match=f"^{re.escape(sentence)}$"):
        check_run(run, "run")


def test_a_missing_file_is_named_with_what_to_give(tmp_path):
    with pytest.raises(RecordsError, match=r"records\.json: no such file; give a run folder that"):
        read_records(tmp_path)


@pytest.mark.parametrize("text", ["{", '{"format": NaN}', '{"format": Infinity}', "\xff"])
def test_what_is_no_json_is_refused_with_the_file_named(tmp_path, text):
    (tmp_path / "records.json").write_text(text, encoding="latin-1")
    with pytest.raises(RecordsError, match=r"records\.json: must be JSON in UTF-8 \("):
        read_records(tmp_path)


def test_a_list_instead_of_an_object_is_refused(tmp_path):
    (tmp_path / "records.json").write_text("[]")
    with pytest.raises(RecordsError, match=r"the top level must be an object, not \[\]$"):
        read_records(tmp_path)


def test_a_records_error_is_a_users_mistake_and_a_value_error():
    assert issubclass(RecordsError, StreamJoinError)
    assert issubclass(RecordsError, ValueError)
    assert RecordsError("x").exit_status == 2


def test_measurements_may_be_null_or_absent():
    bare = {name: samples.record()[name] for name in ("workload", "engine", "platform", "status")}
    run = samples.run(records=[bare, samples.failed_record()])
    assert check_run(run, "run") is run
    assert [engine_row(r).throughput for r in samples.results_of(run)] == [units.MISSING] * 2


# ---- writing ----------------------------------------------------------------------------


def test_the_page_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    out = tmp_path / "pages" / "report.html"
    out.parent.mkdir()
    out.write_text("old")
    write_report([folder], out)
    assert out.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_a_page_of_some_workloads(tmp_path, capsys):
    names = ["band-uniform", "other"]
    run = samples.run(
        [samples.record(workload=n) for n in names], [samples.workload(n) for n in names]
    )
    folder, out = write(tmp_path / "run", run), tmp_path / "other.html"
    verb = ["report", str(folder)]
    assert main([*verb, "--workload", "other", "-o", str(out)]) == 0
    assert "band-uniform" not in out.read_text(encoding="utf-8")
    capsys.readouterr()
    for given, sentence in (
        (
            ["--workload", "othr", "-o", str(out)],
            "no run has a workload 'othr': did you mean other?",
        ),
        (["--workload", "other"], "-o PAGE.html is needed with --workload"),
    ):
        assert main([*verb, *given]) == 2
        assert sentence in capsys.readouterr().err


def test_a_bad_run_leaves_the_old_page_as_it_was(tmp_path):
    good = write(tmp_path / "good", samples.run())
    bad = write(tmp_path / "bad", samples.run(format=9))
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(RecordsError):
        write_report([good, bad], out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good", "report.html"]


def test_a_place_that_cannot_be_written_is_named_and_left_alone(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match=r"taken cannot be written \(Is a directory\)"):
        write_report([folder], tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "taken"]


def test_nothing_is_written_into_the_home_folder(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; from streamjoin.report import write_report; "
        "write_report([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "MPL"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(folder), str(tmp_path / "report.html")],
        env={**kept, "HOME": str(home), "STREAMJOIN_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.iterdir()) == []
    assert list((tmp_path / "cache" / "matplotlib").iterdir())


# ---- verdicts and names -----------------------------------------------------------------


def test_an_integer_beyond_all_floating_point_numbers_is_refused(tmp_path: Path) -> None:
    run = samples.mixed_run()
    run["records"][0]["progress"][1] = [1, 10**400]
    (tmp_path / "records.json").write_text(json.dumps(run))
    with pytest.raises(RecordsError, match="progress"):
        read_records(tmp_path)


def test_the_environment_names_java_as_its_folder_states_it(tmp_path, monkeypatch):
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.4"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _java_version() == "21.0.4"
