"""How Sphinx makes the site of these pages: ``make site``."""

import re
from importlib.metadata import version as version_of
from typing import Any

project = "streamjoin"
author = "the streamjoin project"
release = version = version_of("streamjoin")
copyright = "the streamjoin project, BSD-3-Clause"  # noqa: A001  (Sphinx's name)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["*.in", "*.txt"]
highlight_language = "none"
nitpicky = False

# Pages link to headings as repositories name them, and are read there too.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"
add_module_names = False
napoleon_google_docstring = False
napoleon_use_rtype = False

# Everything that a page needs lies beside it: no fonts, scripts or searches of others.
html_theme = "furo"
html_title = f"streamjoin {release}"
html_show_sourcelink = False
html_show_search_summary = False  # a page read from a file may fetch nothing
smartquotes = False  # commands are copied from the pages
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}


def name_pages(
    _app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]
) -> None:
    """Let docstrings, which name pages as files of the checkout, name pages of the site."""
    lines[:] = [re.sub(r":doc:`docs/(\w+)`|``docs/(\w+)\.md``", r":doc:`/\1\2`", s) for s in lines]


def setup(app: Any) -> None:
    """Connect what changes docstrings."""
    app.connect("autodoc-process-docstring", name_pages)
