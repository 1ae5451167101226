"""Every control of the report page, worked as a reader would in one browser."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests import devtools
from tests.host import report_samples as samples

from streamjoin.report import render

THROUGHPUT = "run1-w1-throughput"
WIDE = f"#{THROUGHPUT} + figure svg.wide"
LOG, SVG, CSV = (f"#{THROUGHPUT} + figure .tools button:nth-child({n})" for n in (1, 2, 3))
ENGINES = "#run1-w1 [aria-label*=': measured'] table"
PLAIN = str.maketrans(
    {"\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ", "\N{MULTIPLICATION SIGN}": "x"}
)


def swept_run():
    """Two values of a setting; measured, simulated and wrong results."""
    names = {64: "memory=64", 1024: "memory=1024"}
    workloads = [
        samples.workload(name, family="memory", settings={"memory_kib": value})
        for value, name in names.items()
    ]
    records = []
    for name in names.values():
        faster = samples.record("npj", throughput_tuples_per_s=samples.spread(800_000.0))
        for record in (samples.record("kang"), faster, samples.fpga_record()):
            few = {"phases_ms": None, "input_stall_cycles": None}  # fewer charts: a cheaper page
            records.append({**record, "workload": name, **few})
    records.append({**samples.wrong_record(), "workload": "memory=64"})
    return samples.run(records, workloads)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render([swept_run()]), encoding="utf-8")
    return file


@pytest.fixture
def page(chromium, file):
    """The page as it is opened; it must end without an error of its script."""
    chromium.errors.clear()
    chromium.open(file)
    yield chromium
    assert chromium.errors == []


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).innerText").translate(PLAIN)


def column(page, number, table=ENGINES):
    """What stands in a column of a table's shown rows."""
    cells = page.run(
        f"[...document.querySelectorAll({table + ' tr.row'!r})].filter((r) => !r.hidden)"
        f".map((r) => r.cells[{number}].innerText)"
    )
    return [cell.translate(PLAIN).split("\n")[0] for cell in cells]


def dots(page):
    """Where the throughput's dots are, in pixels, by engine; the shown ones."""
    return page.run(
        f"Object.fromEntries([...document.querySelectorAll({WIDE + ' [id*=-mark-]'!r})]"
        ".filter((m) => m.getBoundingClientRect().width).map((m) => [m.id.match(/\\d+$/)[0],"
        f" Number(m.querySelector('use').getAttribute('x'))]))"
    )


def drawing(page):
    return page.run(f"document.querySelector({WIDE!r}).innerHTML")


def test_without_scripting_the_page_is_whole_and_has_no_controls(chromium, file):
    chromium.open(file, script=False)
    seen = "!!document.querySelector({!r}).getClientRects().length"
    assert chromium.run(seen.format(WIDE)) is True
    assert chromium.run(seen.format(ENGINES)) is True
    for control in ("#controls", ".tools"):
        assert chromium.run(seen.format(control)) is False
    assert chromium.run("document.querySelectorAll('th button, [tabindex=\"0\"] svg').length") == 0


def test_a_point_under_the_pointer_says_engine_figure_and_workload(page):
    page.point(WIDE, 0.5, 0.3)
    first = text(page, "#tip")
    page.point(WIDE, 0.3, 0.5)
    assert first.startswith(("ibwj-pim\n", "npj\n"))
    engine, figure, workload = text(page, "#tip").split("\n")
    assert engine in {"npj", "kang"}
    assert re.fullmatch(r"(median|slowest round|fastest round) [\d.]+ k tuples/s", figure)
    assert workload == "memory=64"
    page.point("h1")
    assert page.run("tip.hidden") is True


def test_the_keyboard_walks_through_the_points(page):
    page.run(f"document.querySelector({WIDE!r}).focus()")
    said = []
    for key in ("Home", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp", "End"):
        page.press(key)
        said.append(text(page, "#tip").split("\n")[:2])
    assert said == [
        ["ibwj-pim", "median 1.2 M tuples/s"],
        ["npj", "median 800 k tuples/s"],
        ["npj", "slowest round 720 k tuples/s"],
        ["npj", "median 800 k tuples/s"],
        ["ibwj-pim", "median 1.2 M tuples/s"],
        ["fpga-handshake (simulated)", "one round 12.5 M tuples/s"],
    ]
    page.press("Escape")
    assert page.run("tip.hidden") is True


def test_a_table_is_sorted_by_a_click_or_a_key_on_a_column(page):
    assert column(page, 0) == ["kang", "npj", "ibwj-pim"]
    head = f"{ENGINES} th[data-column='2']"
    page.click(f"{head} button")
    assert column(page, 2) == ["1.2 M", "800 k", "400 k"]
    assert page.run(f"document.querySelector({head!r}).ariaSort") == "descending"
    page.press("Enter")
    assert column(page, 2) == ["400 k", "800 k", "1.2 M"]
    assert page.run(f"document.querySelector({head!r}).ariaSort") == "ascending"
    # The error stays below its row.
    below = f"document.querySelector({ENGINES + ' tr.wrong'!r}).nextElementSibling.innerText"
    assert page.run(below).startswith("1 pair is missing")
    page.click(f"{ENGINES} th[data-column='0'] button")
    assert column(page, 0) == ["ibwj-pim", "kang", "npj"]
    assert page.run(f"document.querySelectorAll({ENGINES + ' [aria-sort]'!r}).length") == 1


def test_engines_and_workloads_are_chosen(page):
    height = f"document.querySelector({WIDE!r}).viewBox.baseVal.height"
    before, whole = dots(page), page.run(height)
    page.click("#controls summary")
    page.click("#controls input[value=kang]")
    assert text(page, "#controls summary") == "Engines: 3 of 4"
    assert column(page, 0) == ["npj", "ibwj-pim"]
    assert len(dots(page)) == len(before) - 1
    assert page.run(height) == whole - 32
    lines = (
        "[...document.querySelectorAll('#run1-sweep1-throughput + figure svg.wide [id*=-mark-]')]"
    )
    assert page.run(f"{lines}.filter((e) => e.getClientRects().length).length") == 2
    page.click("#controls [data-check=none]")
    assert dots(page) == {}
    assert column(page, 0) == []
    page.click("#controls [data-check=all]")
    assert dots(page) == before
    assert page.run(height) == whole
    page.click("#controls summary")
    page.run("document.querySelector('select').focus()")
    page.run("document.querySelector('select').value = 'memory=1024'")
    page.run("document.querySelector('select').dispatchEvent(new Event('change'))")
    shown = "[...document.querySelectorAll('section[data-workload]')].filter((s) => !s.hidden)"
    assert page.run(f"{shown}.map((s) => s.dataset.workload)") == ["memory=1024"]
    assert column(page, 0, ".glance") == ["memory=1024"]


def test_the_axis_is_logarithmic_or_linear(page):
    ticks = (
        f"[...document.querySelectorAll({WIDE + ' [id$=axis_1] text'!r})].map((t) => t.textContent)"
    )
    page.point(WIDE)  # the script has drawn it once
    drawn, first = dots(page), page.run(ticks)
    assert page.run(f"document.querySelector({LOG!r}).ariaPressed") == "true"
    assert first[-1].endswith("log scale")
    page.click(LOG)
    assert page.run(f"document.querySelector({LOG!r}).ariaPressed") == "false"
    assert page.run(ticks)[0] == "0"
    assert page.run(ticks)[-1] == "input tuples per second"
    linear = dots(page)
    # Rows: ibwj-pim 1.2 M, npj 800 k, kang 400 k, and 12.5 M below them.
    assert linear["0"] - linear["1"] == pytest.approx(linear["1"] - linear["2"], abs=0.05)
    assert linear["3"] - linear["2"] == pytest.approx(
        12.1 / 0.4 * (linear["1"] - linear["2"]), 0.01
    )
    page.click(LOG)
    assert dots(page) == drawn
    assert page.run(ticks) == first


def test_figures_are_relative_to_the_best_of_their_ranking(page):
    page.click("#relative")
    assert page.run("relative.ariaPressed") == "true"
    assert text(page, "#controls [role=status]").startswith("1 x is the best of a ranking or table")
    assert column(page, 2) == ["0.5 x", "1 x", "1.5 x"]
    assert column(page, 3) == ["0.45 x .. 0.6 x", "0.9 x .. 1.2 x", "1.35 x .. 1.8 x"]
    assert (
        page.run(
            f"document.querySelector({ENGINES + ' [data-column]:nth-child(3) button'!r}).title"
        )
        .translate(PLAIN)
        .startswith("1 x is 800 k of npj")
    )
    page.click("#controls summary")
    page.click("#controls input[value=npj]")  # the best, hidden, stays the measure
    assert column(page, 2) == ["0.5 x", "1.5 x"]
    assert text(page, "#controls [role=status]").endswith(", those of hidden engines too.")
    page.click("#controls input[value=npj]")
    page.click("#controls summary")
    values = f"[...document.querySelectorAll({WIDE + ' text'!r})].map((t) => t.textContent)"
    shown = [each.translate(PLAIN) for each in page.run(values)]
    assert {"wrong: 1.5 x", "1 x", "0.5 x"} <= set(shown)
    at = dots(page)
    assert at["3"] == pytest.approx(at["1"], abs=0.05)  # the best of each ranking
    page.run(f"document.querySelector({WIDE!r}).focus()")
    page.press("Home")
    assert text(page, "#tip").split("\n")[1] == "median 1.2 M tuples/s, 1.5 x the best"
    page.click("#relative")
    assert column(page, 2) == ["400 k", "800 k", "1.2 M"]
    assert column(page, 3)[0] == "360 k .. 480 k"
    assert "800 k" in [each.translate(PLAIN) for each in page.run(values)]


def test_a_chart_is_taken_away_as_svg_and_its_data_as_csv(page):
    page.click(SVG)
    page.click(CSV)
    drawn = page.downloaded(f"{THROUGHPUT}.svg")
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(--" not in drawn
    assert 'class="k' not in drawn  # the page's classes are written out
    assert "stroke-width: 1.2" in drawn
    assert "npj" in "".join(root.itertext())
    rows = list(csv.reader(io.StringIO(page.downloaded(f"{THROUGHPUT}.csv"))))
    assert rows[0] == [
        *("workload", "engine", "ranking", "verdict", "point", "throughput (tuples/s)"),
    ]
    figures = {(row[1], row[4]): (row[2], row[3], float(row[5])) for row in rows[1:]}
    assert len(figures) == 10
    assert figures["npj", "fastest round"] == ("measured", "agrees", 960_000)
    assert figures["ibwj-pim", "median"] == ("measured", "wrong", 1_200_000)
    assert figures["fpga-handshake", "one round"] == ("simulated", "agrees", 12_500_000)


def test_only_the_pages_own_script_runs(chromium, file):
    chromium.open(file)
    chromium.run(
        "document.body.append(Object.assign(document.createElement('script'),"
        "{textContent: 'window.foreign = 1'}))"
    )
    assert chromium.run("window.foreign === undefined") is True
    assert any("Content Security Policy" in error for error in chromium.errors)


def test_controls_fit_a_telephone_and_stay_off_paper(page, file):
    page.open(file, width_px=390, dark=True)
    page.click("#controls summary")
    assert page.run("document.querySelector('.chooser').getBoundingClientRect().right") <= 390
    page.click("#relative")
    assert page.run("relative.ariaPressed") == "true"
    assert page.run("document.querySelector('#controls details').open") is False
    assert page.run("document.documentElement.scrollWidth") == 390
    beyond = "getComputedStyle(document.querySelector('.scroll')).backgroundAttachment"
    assert page.run(beyond) == "local, local, scroll, scroll"  # shadows of what is beyond an edge
    page.open(file, media="print", dark=True)
    assert page.run("document.querySelector('#controls').getClientRects().length") == 0
    assert page.run("document.querySelector('.tools').getClientRects().length") == 0
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 251)"
    cut = (
        "[...document.querySelectorAll('.scroll')].filter((s) => s.scrollWidth > s.clientWidth + 1)"
    )
    page.open(file, width_px=720, media="print")
    assert page.run(f"{cut}.length") == 0
    assert page.run(beyond) == "scroll"


def test_without_a_browser_the_test_says_what_to_type(monkeypatch):
    monkeypatch.setenv("PATH", str(Path(__file__).parent))
    with pytest.raises(pytest.fail.Exception, match="type  make setup"):
        devtools.browser()
