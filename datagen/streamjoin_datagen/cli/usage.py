"""What ``streamjoin data --help`` says after the flags.

The parameters of the generated workloads are those of their dataclasses, and what they mean is
the first sentence that the class's docstring has for each.
"""

import dataclasses
import inspect
import re
import textwrap

from streamjoin_datagen.params import SPECS
from streamjoin_datagen.spec import WorkloadSpec

WIDTH = 80
_COLUMN = 30

_OTHERS = """\
  SUITE                       every workload of a suite, each into DIR/<name>/:
                              small, medium, large, or a TOML file
  import flights [FILE FILE]  flights from New York in 2013 and their weather
  import flights planes       as a stream over planes, airports or weather
  import csv R.csv S.csv      tables of your own, already sorted by arrival
  import parquet R S          the same from Parquet files or folders
  import alliancedb R S       the IaWJ authors' text files, with --layout
  speed [KIND...]             rows a second of each kind, beside NumPy's own
  import tpch CUSTOMER ORDERS TPC-H's tables, .tbl or .parquet
"""

_EXAMPLES = """\
examples:
  streamjoin data band --param rate_r=5000 duration_s=2.5 --seed 1 \\
      --out runs/workloads/band
  streamjoin data equi --param keys=zipf skew=0.8 r_tuples=100000 --seed 1 \\
      --out runs/workloads/zipf
  streamjoin data small --out runs/workloads/small
  streamjoin data import csv orders.csv parcels.csv --on id=order \\
      --out runs/workloads/orders
  streamjoin data import alliancedb trades.txt quotes.txt --layout stock \\
      --out runs/workloads/stock
"""


def epilog() -> str:
    """Workloads, their parameters with defaults and meaning, and examples."""
    kinds = {f"  {kind}": spec.summary for kind, spec in SPECS.items()}
    workloads = "\n".join(["workloads:", *_listed(kinds, _COLUMN)])
    parameters = (_parameters(kind) for kind in SPECS)
    return "\n".join([f"{workloads}\n{_OTHERS}", *parameters, _EXAMPLES])


def _parameters(kind: str) -> str:
    meanings = first_sentences(SPECS[kind])
    rows = {
        f"  {field.name}={_plain(field.default)}": meanings.get(field.name, "")
        for field in dataclasses.fields(SPECS[kind])
        if field.name != "seed"
    }
    lines = [f"parameters of {kind}, with their defaults:"]
    return "\n".join([*lines, *_listed(rows, max(map(len, rows)) + 2)]) + "\n"


def _listed(rows: dict[str, str], column: int) -> list[str]:
    """Lines of what is on the left and, wrapped from a column on, what it means."""
    lines = []
    for shown, meaning in rows.items():
        wrapped = textwrap.wrap(meaning, WIDTH - column) or [""]
        lines.append(shown.ljust(column) + wrapped[0])
        lines += [" " * column + rest for rest in wrapped[1:]]
    return lines


def _plain(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def first_sentences(cls: type[WorkloadSpec]) -> dict[str, str]:
    """What each parameter means: the first sentence of its entry in a numpydoc docstring.

    Returns
    -------
    dict of str to str
        By name; empty where Python runs without docstrings.
    """
    _, _, section = (inspect.getdoc(cls) or "").partition("Parameters\n----------\n")
    meanings = {}
    entries = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)+)", flags=re.MULTILINE)
    for names, meaning in entries.findall(section):
        plain = " ".join(meaning.replace("``", "").split())
        for name in names.split(", "):
            meanings[name] = re.split(r"\.(?: |$)", plain)[0]
    return meanings
