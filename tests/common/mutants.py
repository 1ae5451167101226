"""Documents as nobody should write them: valid ones, changed a little by a seeded generator."""

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

COUNT = 200
"""Of each document."""

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        1e308,
        1 << 70,
        -(1 << 63),
        "",
        "x",
        "\0",
        "é\n\x1b[31m",
        "../..",
        "/",
    ),
    *([], {}, [[]], [None], {"a": {}}, "9" * 5000, "a" * 300, ["k", 1], {"": 0}, "nan", "inf"),
)
ODD_TOML = (
    *("nan", "inf", "-inf", "1e999", "0x7fffffffffffffffff", "true", '""', '"\\u0000"', "[]", "{}"),
    *("[[]]", "1979-05-27T07:32:00Z", "'a/b'", "-1", "9" * 400, "[1, 'a']", "{ a = { b = 1 } }"),
)
RAW = (
    b"",
    b"\xff\xfe",
    b"\0" * 50,
    b"[" * 100_000,
    b'{"a":' * 5000,
    b"a = " + b"[" * 5000,
    b"a = " + b"{a=" * 5000,
    b".".join([b"a"] * 5000) + b" = 1",
    b"[" + b".".join([b"a"] * 3000) + b"]",
    b"{}",
    b"[]",
    b"null",
    b'"\\ud800"',
    b"NaN",
    b"1e999",
    b"9" * 10_000,
)


def json_mutants(valid: Any, seed: int) -> Iterator[bytes]:
    """Yield mutants of a JSON document."""
    rng = random.Random(seed)
    yield from RAW
    for _ in range(COUNT - len(RAW)):
        how = rng.randrange(4)
        if how == 0:
            yield _bytes_changed(json.dumps(valid).encode(), rng)
            continue
        changed = copy.deepcopy(valid)
        for _ in range(how):
            _change(changed, rng)
        document = json.dumps(changed)
        if rng.randrange(8) == 0:
            odd = rng.choice(["1e999", "-Infinity", '"\\udc00"', "[" * 70 + "]" * 70, "1e-999"])
            document = re.sub(
                r"(?<=: )[-0-9.]+", lambda _, odd=odd: odd, document, count=rng.randrange(1, 4)
            )
        yield document.encode()


def toml_mutants(valid: str, seed: int) -> Iterator[bytes]:
    """Yield mutants of a TOML document."""
    rng = random.Random(seed)
    yield from RAW
    lines = valid.splitlines()
    settable = [number for number, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    for _ in range(COUNT - len(RAW)):
        changed, how = list(lines), rng.randrange(5)
        number = rng.choice(settable)
        key = changed[number].split(" = ")[0]
        if how == 0:
            yield _bytes_changed(valid.encode(), rng)
            continue
        if how == 1:
            del changed[number]
        elif how == 2:
            changed.insert(number, f"{rng.choice(['odd', key, 'a.b', 'sweep.a'])} = 1")
        elif how == 3:
            inner = re.sub(
                r"(?<= = )(?:[\w.]+|\"[^\"]*\")", lambda _: rng.choice(ODD_TOML), lines[number]
            )
            changed[number] = inner
        else:
            changed[number] = f"{key} = {rng.choice(ODD_TOML)}"
        yield "\n".join(changed).encode()


def _bytes_changed(valid: bytes, rng: random.Random) -> bytes:
    at, how = rng.randrange(len(valid)), rng.randrange(3)
    if how == 0:
        return valid[:at]
    if how == 1:
        return valid[:at] + bytes([valid[at] ^ 1 << rng.randrange(8)]) + valid[at + 1 :]
    end = rng.randrange(at, len(valid))
    return valid[:at] + valid[end:]


def _change(value: Any, rng: random.Random) -> None:
    """Change one thing, as deep as chance has it."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.randrange(4):
            value = inner
            continue
        how = rng.randrange(4)
        if how == 0:
            del value[key]
        elif how == 1 and isinstance(value, dict):
            value[rng.choice(["odd", "", "path", "format"])] = inner
        else:
            value[key] = copy.deepcopy(rng.choice(ODD))
        return
