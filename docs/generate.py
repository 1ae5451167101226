"""Write the pages of the reference that the code itself states: ``make docs``.

``tests/test_docs.py`` compares them with the files.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamjoin import cli
from streamjoin.bench import figures
from streamjoin.engines import catalog
from streamjoin.report.stored import page as results
from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.cli.options import design_parameters
from streamjoin_hw.cli.pages import registers_page

NOTE = "Generated from the code by `make docs`."


def one_line(words: object) -> str:
    """Return words on one line."""
    return " ".join(str(words).split())


def cell(words: object) -> str:
    """Return a cell of a table: one line, no bar of its own."""
    return one_line(words).replace("|", "\\|")


def table(headings: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    """Return the lines of a table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    return lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]


def knobs_page() -> str:
    """Every engine with what it can do, and its knobs."""
    lines = ["# Engines and knobs, generated", ""]
    lines += [f"{NOTE} What the engines do in words is in [engines](../engines.md)."]
    for name in catalog.names():
        engine = catalog.get(name)
        can = engine.capabilities
        parts = {
            "predicates": ", ".join(sorted(can.predicates)),
            "windows": ", ".join(sorted(can.windows)),
            "order": can.order,
            "arrivals": ", ".join(sorted(can.arrivals)),
            "platform": can.platform,
            "threads": "any number" if can.parallel else "one",
            "live joins": "yes" if can.live else "no",
            "R in a store": "yes" if can.stores else "no",
        }
        if can.backends:
            parts["backends"] = ", ".join(can.backends)
        lines += ["", f"## {name}", "", engine.summary, ""]
        lines += ["; ".join(f"{part}: {value}" for part, value in parts.items()) + "."]
        if engine.knobs:
            rows: list[tuple[object, ...]] = [
                (f"`{knob.name}`", f"`{knob.default}`", knob.range, knob.doc)
                for knob in engine.knobs
            ]
            lines += ["", *table(("knob", "default", "takes", "meaning"), rows)]
    return "\n".join(lines) + "\n"


def parameters_page() -> str:
    """Every parameter of a design, and the presets' values."""
    rows: list[tuple[object, ...]] = [
        (f"`{name}`", f"`{default}`", meaning) for name, default, meaning in design_parameters()
    ]
    lines = ["# Design parameters and presets", "", f"{NOTE} `--param NAME=VALUE` sets one.", ""]
    lines += [*table(("parameter", "default", "meaning"), rows), "", "## Presets", ""]
    shown = ("design", "cores", "segment_tuples", "lanes", "probes")
    rows = [
        (
            f"`{name}`",
            *(getattr(params, field) for field in shown),
            ", ".join(term.text for term in params.terms),
        )
        for name, params in PRESETS.items()
    ]
    return "\n".join(lines + table(("preset", *shown, "terms"), rows)) + "\n"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return a parser's own and those of its actions."""
    inner = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)  # the only way to list them
    ]
    if not inner:
        yield parser
    for action in inner:
        for sub in action.choices.values():
            yield from parsers(sub)


def arguments(parser: Any) -> list[tuple[object, ...]]:
    """Return a row for each argument of a command."""
    rows: list[tuple[object, ...]] = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        value: Any = action.metavar or (
            ",".join(map(str, action.choices)) if action.choices else action.dest.upper()
        )
        value = " ".join(value) if isinstance(value, tuple) else str(value)
        takes = action.nargs != 0
        if action.option_strings:
            name = ", ".join(action.option_strings) + (f" {value}" if takes else "")
            name += " (required)" if action.required else ""
        else:
            name = value + (" ..." if action.nargs in {"+", "*"} else "")
        rows.append((f"`{one_line(name)}`", parser._get_formatter().meaning(action)))
    return rows


def notes(parser: argparse.ArgumentParser) -> list[str]:
    """Return what stands below a command's help: its examples, parameters of workloads.

    Design parameters, which many commands show, have a page of their own.
    """
    text = (parser.epilog or "").strip().replace("%(prog)s", parser.prog)
    if "design parameters" in text:
        text = text[text.index("\nexample") :].strip() if "\nexample" in text else ""
    return ["", "```text", text, "```"] if text else []


def cli_page() -> str:
    """Every verb with its arguments."""
    lines = ["# Command line", ""]
    lines += [
        f"{NOTE} `streamjoin VERB --help` shows the same. Parameters of designs are on",
        "[a page of their own](parameters.md).",
    ]
    for verb, summary in {**cli.OWN_VERBS, **cli.OTHER_VERBS}.items():
        top = cli.Parser(prog=f"streamjoin {verb}")
        cli._load(verb).configure(top)
        lines += ["", f"## streamjoin {verb}", "", f"{summary[0].upper()}{summary[1:]}."]
        for parser in parsers(top):
            if parser is not top:
                lines += ["", f"### {parser.prog}"]
                if parser.description:
                    lines += ["", one_line(parser.description)]
            lines += ["", *table(("argument", "meaning"), arguments(parser)), *notes(parser)]
        if list(parsers(top)) != [top]:
            lines += notes(top)
    return "\n".join(lines) + "\n"


PAGES = {
    "registers.md": lambda: registers_page(PRESETS["tiny-band"]),
    "reference/knobs.md": knobs_page,
    "reference/parameters.md": parameters_page,
    "reference/cli.md": cli_page,
    "results/figures.md": figures.page,
    **results.pages(),
}
"""Pages by their paths in ``docs/``."""


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        path = Path(__file__).parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page())
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
