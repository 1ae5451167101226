"""CSV whose fields hold line ends, whose lines are long, and whose quotes are not closed."""

import csv
import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pytest

import streamjoin as sj
from streamjoin.errors import InputError
from streamjoin.inputs.piped import read_piped
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.imports.readers import csv_table

MIB = 1 << 20


def joined(path: Path, keys: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = sj.join(path, {"k": keys}, on="k").table(["r.k", "v"]).to_pylist()
    return sorted(rows, key=lambda row: row["k"])


def test_a_line_end_in_quotes_across_the_first_block_is_a_part_of_its_field(
    tmp_path: Path,
) -> None:
    line = "1,y\n"
    begun = "k,v\n" + line * ((MIB - len("k,v\n") - len('2,"ab\n')) // len(line))
    field = "a" * (MIB - len(begun) - len('2,"\n')) + "\n7,bb"
    (path := tmp_path / "one.csv").write_text(f'{begun}2,"{field}"\n{line * 10}')
    assert joined(path, [2, 7]) == [{"k": 2, "v": field}]
    table = read_piped(io.BytesIO(path.read_bytes()), list, ["k"])
    assert table.equals(csv_table("r", path))
    assert table.filter(pa.compute.equal(table["k"], 2))["v"].to_pylist() == [field]


@pytest.mark.parametrize("size", [MIB, 64 * MIB])
def test_a_line_end_of_two_bytes_in_quotes_is_not_divided_between_blocks(
    size: int, tmp_path: Path
) -> None:
    """The reader takes a line feed at the begin of a block for the end of the line before."""
    begun = "v,k\n" if size == MIB else f"v,k\n{'y' * (2 * MIB)},0\n"
    field = '"a\r'
    lines, rest = divmod(size - len(begun) - len(field), 4)
    text = f"{begun}x,{'1' * (1 + rest)}\n{'x,1' + chr(10)}" + "x,1\n" * (lines - 2) + field
    assert len(text) == size
    text += '\n b",7\nz,8\n'
    (path := tmp_path / "divided.csv").write_bytes(text.encode())
    assert joined(path, [7, 8]) == [{"k": 7, "v": "a\r\n b"}, {"k": 8, "v": "z"}]
    found = read_piped(io.BytesIO(text.encode()), list, ["k"])["v"]
    assert found[-2].as_py() == csv_table("r", path)["v"][-2].as_py() == "a\r\n b"


def test_text_that_is_not_utf_8_is_read_where_it_is_not_asked_for(tmp_path: Path) -> None:
    (path := tmp_path / "latin.csv").write_bytes(b'k,v\n2,\xe9 5"\n3,b\n')
    assert sj.join(path, {"k": [2, 3]}, on="k").table("v")["v"].to_pylist() == [b'\xe9 5"', b"b"]


def test_fields_with_line_ends_are_read_as_they_were_written(tmp_path: Path) -> None:
    chance = random.Random(seed := 3)
    parts = ["a", "3,x", "\n", "\r\n", '"', ",", " ", "\n3,yy\n"]
    values = ["".join(chance.choices(parts, k=chance.randint(1, 9))) + "." for _ in range(60_000)]
    with (path := tmp_path / "many.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["k", "v"], *enumerate(values)])
    assert path.stat().st_size > MIB
    rows = joined(path, list(range(len(values))))
    assert [row["v"] for row in rows] == values, f"seed {seed}"
    own = tmp_path / "own.csv"  # what a join has written is read again
    pv.write_csv(sj.join(path, path, on="k").table(["r.k", "r.v"]), own)
    assert [row["v"] for row in joined(own, list(range(len(values))))] == values


def test_a_line_that_is_longer_than_a_block_is_read(tmp_path: Path) -> None:
    for size in (MIB - 10, MIB + 10, 3 * MIB):
        (path := tmp_path / "long.csv").write_text(f"k,v\n1,{'x' * size}\n2,y\n")
        assert [len(row["v"]) for row in joined(path, [1, 2])] == [size, 1]
        assert read_piped(io.BytesIO(path.read_bytes()), list, ["k"]).num_rows == 2
        assert csv_table("r", path).num_rows == 2


OPEN = [
    'k,v\n2,"b\n3,c\n4,d\n',
    'k,v\n1,a\n2,"b',
    'k,v\n2,"\n',
    'k,v\n2,"a\n""\n',
    'k,v\n2,"b\r\n',
    'k,v\n2,"5\n',
    'k\n"b\n',
    'k\n"a"\n"\n',
    'k,v\n3,5" pipe\n2,"b\n3,c\n4,d\n',  # a quote in a field makes the number of quotes even
    'k,v\n2,a"\n3,"""\n',
    'k,v\n2,"b\n\n\n',
]
CLOSED = [
    ('k,v\n2,"b\n"\n', "b\n"),
    ('k,v\n2,"b\r\n"\r\n', "b\r\n"),
    ('k,v\n2,"b\n"', "b\n"),
    ('k,v\n3,5" pipe\n2,"b\n"\n', "b\n"),
    ('k,v\n2,5" pipe\n', '5" pipe'),
    ('k,v\n3,5" pipe\n2,""\n', ""),
    ('k,v\n3,5" pipe\n2,\n', None),
    ('k,v\n3,5" pipe\n2,"b\n"\n\n', "b\n"),
    ('k,v\r\n3,5" pipe\r\n2,"b\r\n"\r\n\r\n', "b\r\n"),
    ('k,v\n2,"\n"', "\n"),
]


@pytest.mark.parametrize("text", OPEN)
def test_a_file_that_ends_in_quotes_is_refused(text: str, tmp_path: Path) -> None:
    (path := tmp_path / "cut.csv").write_bytes(text.encode())
    sentence = "it ends in quotes: it was cut off, or a quote is missing"
    with pytest.raises(InputError, match=rf"cut\.csv: cannot be read: {sentence}: mend it, or"):
        sj.join(path, {"k": [2, 3, 4]}, on="k")
    with pytest.raises(InputError, match=rf"standard input: cannot be read .*: {sentence}"):
        read_piped(io.BytesIO(text.encode()), list, ["k"])
    with pytest.raises(SpecError, match=rf"cut\.csv cannot be read as csv: {sentence}"):
        csv_table("r", path)


@pytest.mark.parametrize(("text", "value"), CLOSED)
def test_quotes_that_are_closed_or_stand_for_themselves_are_not(
    text: str, value: str | None, tmp_path: Path
) -> None:
    (path := tmp_path / "whole.csv").write_bytes(text.encode())
    assert joined(path, [2]) == [{"k": 2, "v": value}]
    assert read_piped(io.BytesIO(text.encode()), list, ["k"])["v"].to_pylist()[-1] == value


def test_files_that_say_too_little_alone_take_the_types_of_the_others(tmp_path: Path) -> None:
    def write(*contents: str) -> str:
        for number, content in enumerate(contents):
            (tmp_path / f"m{number}.csv").write_text(content)
        return str(tmp_path / "m*.csv")

    files = write("k,v,w\n1,2,a\n2,,b\n", "k,v,w\n", "k,v,w\n3,0.5,\n")
    rows = sj.join(files, {"k": [1, 2, 3]}, on="k").table("r.*").to_pylist()
    assert sorted(map(str, rows)) == [
        "{'k': 1, 'v': 2.0, 'w': 'a'}",
        "{'k': 2, 'v': None, 'w': 'b'}",
        "{'k': 3, 'v': 0.5, 'w': None}",
    ]
    exact = 1 << 53
    for number, refused in ((exact - 1, False), (exact, True), (-exact, True)):
        write(f"k,v,w\n1,{number},a\n")
        if refused:
            sentence = (
                r"m2\.csv: has not the columns of .*m0\.csv: 'v' is double in it alone: store"
            )
            with pytest.raises(InputError, match=sentence):
                sj.join(files, {"k": [1]}, on="k").table()
        else:
            (row,) = sj.join(files, {"k": [1]}, on="k").table("v").to_pylist()
            assert int(row["v"]) == number
    write("k,v,w\n1,x,a\n")
    with pytest.raises(InputError, match="'v' is double in it alone: store them as Parquet, which"):
        sj.join(files, {"k": [1]}, on="k").table()


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_called_so(order: str, tmp_path: Path) -> None:
    text = ("\ufeff" + "k,v\n1,a\n").encode(order)
    (path := tmp_path / "wide.csv").write_bytes(text)
    with pytest.raises(InputError, match=r"wide\.csv: cannot be read: it is UTF-16: store it as"):
        sj.join(path, {"k": [1]}, on="k")
    with pytest.raises(InputError, match=r"standard input: cannot be read .*: it is UTF-16: store"):
        read_piped(io.BytesIO(text), list, ["k"])
