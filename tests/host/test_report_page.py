"""The report page as a reader gets it: its text, and what Chromium makes of it."""

import html
import re

import pytest
from tests.host import report_samples as samples

from streamjoin.report import render
from streamjoin.report.templating import TEMPLATES

PLAIN = str.maketrans({"\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " "})

# Run in the page, after it: what a reader would see, as JSON in an element around the page.
MEASURE = r"""
<script>
const box = (e) => e.getBoundingClientRect();
const paper = getComputedStyle(document.body).backgroundColor;
const shows = (colour) => colour !== 'none' && colour !== paper && !/^rgba.*, 0\)$/.test(colour);
const painted = (e) => [...e.querySelectorAll('path, use')].some((part) => {
  const style = getComputedStyle(part), size = box(part);
  return (size.width > 0 || size.height > 0)
    && (shows(style.fill) || style.fill.startsWith('url') || shows(style.stroke));
});
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
const charts = [...document.querySelectorAll('figure')].map((figure) => {
  const seen = [...figure.querySelectorAll('svg.chart')].filter((e) => box(e).width > 0);
  const svg = seen[0];
  if (!svg) return {versions: seen.length, label: figure.textContent.trim()};
  const scale = box(svg).width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll('text')].filter((e) => e.textContent.trim());
  const boxes = texts.map(box);
  const clashes = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    if (overlap(a, b)) clashes.push([texts[i].textContent, texts[i + 1 + j].textContent]);
  }));
  return {
    versions: seen.length,
    label: svg.getAttribute('aria-label') || '',
    expected: Number(svg.dataset.marks),
    marks: [...svg.querySelectorAll('[id*="-mark-"]')].filter(painted).length,
    left: Math.min(box(svg).left, ...boxes.map((b) => b.left)),
    right: Math.max(box(svg).right, ...boxes.map((b) => b.right)),
    font_px: Math.min(...texts.map((e) => parseFloat(getComputedStyle(e).fontSize) * scale)),
    texts: texts.length,
    clashes,
  };
});
const tables = [...document.querySelectorAll('table')].map((table) => ({
  label: table.parentElement.getAttribute('aria-label'),
  expected: Number(table.dataset.rows),
  rows: [...table.querySelectorAll('tr.row')].filter((e) => e.textContent.trim()).length,
  right: box(table.parentElement).right,
  hidden: table.parentElement.scrollWidth - table.parentElement.clientWidth,
  heads: [...table.querySelectorAll('thead th')]
    .filter((e) => box(e).right <= box(table.parentElement).right + 1).map((e) => e.innerText),
  tallest: Math.max(...[...table.querySelectorAll('tr.row')].map((e) => box(e).height)),
}));
const measured = document.createElement('pre');
measured.id = 'measured';
measured.textContent = JSON.stringify({
  width: innerWidth, page: document.documentElement.scrollWidth, paper, charts, tables,
});
parent.document.body.append(measured);
</script>
"""


def measured_in(chromium, page, folder, width_px, *, dark=False):
    """Open a page in headless Chromium and return what its measuring script found."""
    # The page runs its own scripts alone, and the measuring one is none of them.
    policy = r'<meta http-equiv="Content-Security-Policy"[^>]*>'
    return chromium.measure(re.sub(policy, "", page), MEASURE, folder, width_px, dark=dark)


def problems(measured):
    """Everything that a reader would complain about, one sentence each."""
    found = []
    if measured["page"] > measured["width"]:
        found.append(f"the page is {measured['page']} px wide")
    for chart in measured["charts"]:
        name = chart["label"].split(":")[0]
        if chart["versions"] != 1:
            found.append(f"{name}: {chart['versions']} versions are visible")
            continue
        if not chart["marks"] or chart["marks"] != chart["expected"]:
            found.append(f"{name}: {chart['marks']} of {chart['expected']} marks are drawn")
        if chart["left"] < 0 or chart["right"] > measured["width"]:
            found.append(f"{name}: sticks out of the page")
        if chart["texts"] and chart["font_px"] < 10:
            found.append(f"{name}: text of {chart['font_px']} px")
        found += [f"{name}: {a!r} and {b!r} overlap" for a, b in chart["clashes"]]
    for table in measured["tables"]:
        if not table["rows"] or table["rows"] != table["expected"]:
            found.append(f"{table['label']}: {table['rows']} of {table['expected']} rows are there")
        if table["right"] > measured["width"]:
            found.append(f"{table['label']}: sticks out of the page")
    return found


# ---- text -------------------------------------------------------------------------------


def text_of(page):
    body = re.sub(r"<(style|svg|script).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).translate(PLAIN)


def test_the_verdict_comes_first_and_counts_every_result():
    page = samples.page("run")
    assert 'data-verdict="ok"' in page
    assert "All 3 results agree with the oracle." in text_of(page)
    page = samples.page("mixed_run")
    assert "7 of 9 results agree with the oracle; 1 wrong, 1 failed." in text_of(page)
    assert page.index("data-verdict") < page.index("<table")
    assert 'data-verdict="ok"' not in page.split("<table")[0]


def test_an_unchecked_result_is_never_counted_as_agreeing():
    page = render([samples.run([samples.record(), samples.record("npj", checked=False)])])
    assert "1 of 2 results agrees with the oracle; 1 not checked." in text_of(page)


def test_a_run_without_results_says_so():
    assert "No result was recorded." in text_of(render([samples.run([])]))


def test_rendering_no_run_is_refused():
    with pytest.raises(ValueError, match=r"^runs must hold at least one run, not none$"):
        render([])


def test_errors_of_wrong_and_failed_results_are_printed():
    text = text_of(samples.page("mixed_run"))
    assert "1 pair is missing, the first (17, 401)." in text
    assert "The merge did not end within 60 s." in text


def test_the_page_says_what_was_run_and_how_to_repeat_it():
    text = text_of(samples.page("mixed_run"))
    assert (
        "Band join on x=a:10:10 and y=b:10:10 , window count:1024 , of 20 000 R with 20 000 S "
        "tuples; 163 pairs according to the oracle, which took 2.1 s"
    ) in text
    assert "streamjoin compare benchmarks/workloads/small.toml --out runs/small" in text
    for part in ("AMD EPYC", "25 GB", "numba 0.68.1", "abc1234", "2026-11-20 23:30 UTC"):
        assert part in text
    assert "Java 17.0.15 Rounds 1 to 5 checked rounds for each engine and workload" in text
    assert "pyspark 4.0.0" in text


def test_every_row_of_hardware_names_its_clock_and_whether_it_is_assumed():
    text = text_of(samples.page("mixed_run"))
    seconds = "Seconds in this row are cycles at"
    assert text.count(f"{seconds} 100 MHz assumed ; simulated, not measured") == 2
    assert text.count(f"{seconds} 61 MHz, post-route timing report") == 1
    assert text.count("simulated, not measured") == 2
    assert "3.2 ms 100 MHz assumed model" in text
    assert "cores 16, segment_tuples 64, lanes 8" in text


def test_simulated_figures_are_ranked_apart_from_measured_ones():
    text = text_of(samples.page("run"))
    assert "Fastest measured that agrees Beside it, simulated Tuples Pairs" in text
    assert "kang, 400 k tuples/s fpga-handshake, 12.5 M tuples/s 100 MHz assumed" in text
    assert "Beside it, simulated" not in text_of(render([samples.run([samples.record()])]))


def test_a_board_at_an_assumed_clock_is_not_called_simulated():
    board = samples.fpga_record(backend="board", clock_source="assumed")
    text = text_of(render([samples.run([samples.record(), board])]))
    assert "At an assumed clock, ranked apart" in text
    assert "Simulated, ranked apart" not in text


def test_latencies_of_two_origins_stand_in_two_tables():
    page = samples.page("run")
    labels = re.findall(r'aria-label="Engines on band-uniform: ([^"]*)"', page)
    assert [html.unescape(label) for label in labels] == [
        "measured, latency of a match from the run's start",
        "simulated, ranked apart, latency of a match from acceptance by the hardware",
    ]
    measured, simulated = page.split('aria-label="Engines on band-uniform: simulated')
    assert "10\N{NO-BREAK SPACE}µs</td>" in measured
    assert "10\N{NO-BREAK SPACE}µs</td>" not in simulated.split("</table>")[0]


def test_a_run_of_one_round_speaks_of_no_median():
    text = text_of(render([samples.run([samples.record(rounds=1), samples.fpga_record()])]))
    before, words = text.split("What the words mean")
    assert "median" not in before
    assert "Tuples/s one round" in before
    assert "Rounds Throughput is the median of the checked rounds." in words


def test_a_claim_names_its_points():
    points = [
        {"point": "memory=64", "over": "memory=64", "ratio": 1.5},
        {"point": "memory=128", "over": "memory=1", "ratio": 2.5},
    ]
    claim = {"text": "twice as fast", "published": 2.0, "of": "service_rate", "by": "max"}
    claim |= {"here": 2.5, "min": 1.5, "max": 2.5, "points": points, "verdict": "holds"}
    alone = {
        **claim,
        "says": "about",
        "verdict": "holds in part",
        "here": 1.5,
        "max": 1.5,
        "points": points[:1],
    }
    none = {**claim, "here": None, "min": None, "max": None, "points": []}
    about = {"name": "x", "source": "y", "limit": "z", "claims": [claim, alone, none]}
    text = text_of(render([samples.run(experiment=about)]))
    assert (
        "twice as fast 2 x 2.50 x holds service rate maximum of 2 points, 1.50 to 2.50 x "
        "memory=64 1.50 x; memory=128 over memory=1 2.50 x"
    ) in text
    assert "twice as fast about 2 x 1.50 x holds in part service rate memory=64 " in text
    assert "twice as fast 2 x no point holds service rate" in text


def test_the_page_names_whoever_gave_the_right_result():
    text = text_of(render([samples.second_oracle_run()]))
    assert "\N{CHECK MARK} agrees with DuckDB; 1 more is the check itself" in text
    assert "163 pairs according to DuckDB, which took 2.1 s" in text
    assert "Against DuckDB" in text
    assert "duckdb cpu \N{WHITE CIRCLE} is the check" in text


def test_the_sentence_on_a_workload_leaves_out_its_kind():
    run = samples.run(workloads=[samples.workload(kind="odd-one", arrival="replay", speedup=10)])
    text = text_of(render([run]))
    assert "S tuples, replayed at their arrival times (\N{MULTIPLICATION SIGN} 10); 163" in text
    assert "odd-one" not in text


def test_throughput_is_defined_up_to_the_end_of_the_run():
    text = text_of(samples.page("run"))
    assert "from the start to the end of the run: all input taken, all matches out, a" in text


def test_a_busy_machine_is_mentioned():
    run = samples.run()
    assert "The machine was busy" not in text_of(render([run]))
    run["environment"]["load_average"] = 1.6953125
    assert "The machine was busy (load 1.7 on 2 cores)" in text_of(render([run]))


def test_the_page_needs_nothing_from_elsewhere():
    page = samples.page("mixed_run", "run")
    namespace = "http://www.w3.org/2000/svg"
    loaded = r"https?://|url\((?!#)|@import|<link|<img|<script src|<iframe|src="
    assert not re.search(loaded, page.replace(namespace, ""))
    targets = re.findall(r'href="([^"]*)"', page)
    assert targets
    assert all(target.startswith("#") for target in targets)
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert {target[1:] for target in targets} <= set(names)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(names)


def test_light_and_dark_define_every_variable_that_is_used():
    page = samples.page("mixed_run")
    assert '<meta name="color-scheme" content="light dark">' in page
    light = re.search(r":root \{ color-scheme: light dark; (.*?)\}", page)
    dark = re.search(r"prefers-color-scheme: dark\) \{ :root \{ (.*?)\}", page)
    assert light
    assert dark
    defined = [set(re.findall(r"(--[\w-]+):", found[1])) for found in (light, dark)]
    assert defined[0] == defined[1]
    same = {"--serif", "--sans", "--mono", "--cover", "--shade"}
    assert set(re.findall(r"var\((--[\w-]+)\)", page)) <= defined[0] | same


def test_names_that_look_like_markup_are_shown_as_they_are():
    evil = '<script>alert("1")</script>&amp;'
    run = samples.run(
        [
            samples.record(evil, workload=evil, knobs={evil: evil}),
            samples.fpga_record(workload=evil, clock_source=evil, knobs={evil: evil}, backend=evil),
            {**samples.failed_record(), "workload": evil, "error": evil},
        ],
        [samples.workload(evil, predicate=evil, window=evil, kind=evil, oracle=evil)],
        title=evil,
        command=evil,
        created=evil,
    )
    run["environment"] |= {"cpu": evil, "packages": {evil: evil}}
    page = render([run, run])
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;") > 20


def test_the_same_records_give_the_same_page():
    assert render([samples.mixed_run()]) == samples.page("mixed_run")


def test_every_chart_tells_its_numbers_to_those_who_do_not_see_it():
    page = samples.page("mixed_run")
    charts = re.findall(r"<svg[^>]*>", page)
    labels = [html.unescape(re.search(r'aria-label="([^"]*)"', c)[1]) for c in charts]
    assert all('role="img"' in chart for chart in charts)
    assert any("kang 400 k;" in label and "wrong: 1.2 M" in label for label in labels)
    assert any("kang p50 10 µs, p99 30 µs" in label for label in labels)


def test_several_runs_are_set_side_by_side():
    fast = samples.run(
        [samples.record(throughput_tuples_per_s=samples.spread(600_000.0))], title="fast"
    )
    text = text_of(render([samples.run(), fast]))
    assert "The runs side by side" in text
    assert "band-uniform kang 400 k 600 k \N{MULTIPLICATION SIGN} 1.5" in text
    assert "The runs side by side" not in text_of(render([fast]))


# ---- in the browser ---------------------------------------------------------------------


@pytest.mark.parametrize(("width_px", "dark"), [(390, False), (390, True), (1280, False)])
def test_a_reader_finds_nothing_to_complain_about(chromium, tmp_path, width_px, dark):
    page = samples.page("mixed_run", "run")
    measured = measured_in(chromium, page, tmp_path, width_px, dark=dark)
    assert problems(measured) == []
    assert measured["width"] == width_px
    assert measured["paper"] == ("rgb(21, 24, 27)" if dark else "rgb(253, 253, 251)")
    assert len(measured["charts"]) == 18
    assert len(measured["tables"]) == 15


@pytest.mark.parametrize("width_px", [390, 1280])
def test_many_engines_with_long_names_stay_readable(chromium, tmp_path, width_px):
    page = samples.page("large_run")
    assert problems(measured_in(chromium, page, tmp_path, width_px)) == []
    # Nineteen engines on one workload; a page of several is to stay below 1 MB.
    assert len(page.encode()) < 300_000
    scripts = [file.stat().st_size for file in TEMPLATES.glob("*.js")]
    assert len(scripts) == 2
    assert sum(scripts) < 25_000


def tables_of(measured, label):
    return [table for table in measured["tables"] if table["label"].startswith(label)]


@pytest.mark.parametrize("sample", ["mixed_run", "large_run"])
def test_the_tables_fit_a_wide_window_without_scrolling(chromium, tmp_path, sample):
    measured = measured_in(chromium, samples.page(sample), tmp_path, 1280)
    fitting = [*tables_of(measured, "Engines on"), *tables_of(measured, "Workloads at")]
    assert len(fitting) > 1
    assert [table["hidden"] for table in fitting] == [0] * len(fitting)


def test_a_narrow_window_shows_workload_verdict_and_fastest(chromium, tmp_path):
    measured = measured_in(chromium, render([samples.second_oracle_run()]), tmp_path, 390)
    (glance,) = tables_of(measured, "Workloads at")
    assert glance["heads"][:3] == ["Workload", "Checked", "Fastest measured that agrees"]
    assert glance["tallest"] <= 90


def emptied(page):
    """The first chart keeps its frame and loses all that is in it."""
    whole = r'(?s)(<svg class="chart wide"[^>]*>).*?</svg>'
    return re.sub(whole, r"\1</svg>", page, count=1)


def colourless(page):
    """The first mark keeps its shape and loses its paint."""
    first, rest = page.split("-mark-0", 1)
    mark, rest = rest.split("</g>", 1)
    mark = re.sub(r'class="[^"]*"', 'style="fill: none"', mark)
    return f"{first}-mark-0{mark}</g>{rest}"


WIDER = ('<svg class="chart wide"', '<svg style="width:1400px" class="chart wide"')
BIGGER = ("svg.chart text {", "svg.chart text { font-size: 34px !important;")
ROW = r'(?s)<tr class="row agrees.*?</tr>'


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (emptied, r"Throughput in .*: 0 of 3 marks are drawn"),
        (colourless, r"Throughput in .*: 2 of 3 marks are drawn"),
        (lambda page: page.replace(*WIDER), r"Latency of matches .*: sticks out of the page"),
        (lambda page: page.replace(*BIGGER), r"Throughput in .*: '.*' and '.*' overlap"),
        (
            lambda page: re.sub(ROW, "", page, count=1),
            r"Engines on band-uniform: measured.*: 1 of 2 rows are there",
        ),
    ],
)
def test_the_measurement_notices_a_faulty_page(chromium, tmp_path, fault, complaint):
    page = samples.page("run")
    assert fault(page) != page
    found = problems(measured_in(chromium, fault(page), tmp_path, 1280))
    assert any(re.fullmatch(complaint, sentence) for sentence in found), found
