"""What cannot be streamed is refused in a sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.stream_samples import START_US, reader, run, run_here, streams, write

from streamjoin.errors import InputError, UnsupportedError
from streamjoin_datagen.session import Session
from streamjoin_spark.batch.failures import explained
from streamjoin_spark.streaming.query import stream_join, stream_join_files
from streamjoin_spark.streaming.state import FOLDER, last_record

pytestmark = pytest.mark.timeout(600)


def test_what_cannot_be_streamed_is_refused(session: Session, tmp_path: Path) -> None:
    r, s = streams(5)
    write(tmp_path / "r", r, 1)
    write(tmp_path / "s", s, 1)
    still = session.spark.read.parquet(str(tmp_path / "r"))
    moving = reader(session, tmp_path / "r")
    folders = {"out": tmp_path / "pairs", "checkpoint": tmp_path / "checkpoint"}
    for frame, how, error, message in (
        (moving, {"window": "all"}, UnsupportedError, "needs a window that time ends"),
        (moving, {"window": "count:4"}, UnsupportedError, "needs a window that time ends"),
        (still, {"window": "time:1s"}, InputError, "r: is no streaming DataFrame"),
        (moving, {"window": "time:1s", "row": "x"}, InputError, "needs a column 'x' of integers"),
        (moving, {"window": "time:1s", "out": tmp_path}, InputError, "something else"),
    ):
        with pytest.raises(error, match=message):
            stream_join(frame, moving, on="k", **{**folders, **how})  # type: ignore[arg-type]
    assert run(session, tmp_path, on="k", window="time:9us")["batch"] == 0
    with pytest.raises(InputError, match="checkpoint of a join with window time:9us, not time:8us"):
        run(session, tmp_path, on="k", window="time:8us")
    state = tmp_path / "checkpoint" / FOLDER / "batch-0.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 1}))
    with pytest.raises(InputError, match="is a checkpoint of format 1, not 2; choose another"):
        run(session, tmp_path, on="k", window="time:9us")
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(InputError, match="holds pairs of another checkpoint"):
        run(session, tmp_path, on="k", window="time:9us")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"row": [1], "ts": [START_US]}, "there is no column 'k'"),
        ({"row": [1], "ts": [START_US], "k": ["a"]}, "other types than the files before it"),
        (None, "cannot be read as Parquet"),
    ],
)
def test_a_file_that_does_not_fit_ends_the_query_in_a_sentence(
    made: dict[str, list[object]] | None, message: str, session: Session, tmp_path: Path
) -> None:
    r, s = streams(7)
    write(tmp_path / "r", r, 1)
    write(tmp_path / "s", s, 1)
    path = tmp_path / "r" / "part-999.parquet"
    if made is None:
        path.write_bytes(b"PAR1 and no more")
    else:
        pq.write_table(pa.table(made), path)
    said: Exception
    if made is None or "k" in made:
        with pytest.raises(InputError) as refused:
            run_here(tmp_path, on="k", window="time:9us")
        said = refused.value
    else:
        with pytest.raises(StreamingQueryException) as failed:
            run(session, tmp_path, on="k", window="time:9us")
        said = explained(failed.value)
    assert isinstance(said, InputError)
    assert str(said).startswith(str(path))
    assert message in str(said)
    assert last_record(tmp_path / "checkpoint" / FOLDER)["batch"] == 0


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (("string", "int64"), "r: 'k' is string, s: 'k' is integer; both must be of one kind"),
        (("double", "double"), "is floating-point, which joins on Spark do not take"),
    ],
)
def test_columns_that_never_compare_are_refused_before_a_batch(
    kinds: tuple[str, str], message: str, session: Session, tmp_path: Path
) -> None:
    for side, kind in zip(("r", "s"), kinds, strict=True):
        (tmp_path / side).mkdir()
        table = pa.table({"row": [0], "ts": [START_US], "k": pa.array([1]).cast(kind)})
        pq.write_table(table, tmp_path / side / "part-000.parquet")
    frames = [
        session.spark.readStream.schema(f"row long, ts long, k {kind.strip('64')}").parquet(
            str(tmp_path / side)
        )
        for side, kind in zip(("r", "s"), kinds, strict=True)
    ]
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    with pytest.raises((InputError, UnsupportedError), match=message):
        stream_join_files(session.spark, tmp_path / "r", tmp_path / "s", window="time:1s", **how)
    with pytest.raises((InputError, UnsupportedError), match=message):
        stream_join(*frames, window="time:1s", **how)


def test_a_batch_of_no_file_is_refused(session: Session, tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    with pytest.raises(InputError, match="the maximum files of a batch must be at least 1, not 0"):
        stream_join_files(
            session.spark,
            tmp_path,
            tmp_path,
            window="time:1s",
            most_files=0,
            **how,
        )
