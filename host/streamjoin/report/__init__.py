"""Records in, one self-contained page out.

The report never measures: it reads the ``records.json`` of one or several runs, checks its
form, and writes tables, charts and a verdict as one HTML file that needs no network. A script in
it sorts, filters and redraws; the page is whole without it. Importing this package is cheap; the
template engine and the plotting library are loaded when a page is rendered.
"""

from streamjoin.report.page import RUN_PAGE, complete_page, render, write_report
from streamjoin.report.records import RecordsError, read_records

__all__ = ["RUN_PAGE", "RecordsError", "complete_page", "read_records", "render", "write_report"]
