"""What the drawings of a page have in common, written once: styles, and marks by short names."""

import re

_DRAWING = re.compile(r'<svg class="chart .*?</svg>', re.DOTALL)
_STYLE = re.compile(r' style="([^"]*)"')
_NAME = re.compile(r'(?<=[#"])((?:[\w]+-)+(?:wide|narrow))-([mph][0-9a-f]{10})\b')


def share_styles(page: str, place: str) -> str:
    """Write each style of the drawings once, as a class of a sheet, and shorten their names.

    Parameters
    ----------
    page : str
        The page; only what is inside its drawings changes.
    place : str
        What stands where the sheet goes.

    Examples
    --------
    >>> share_styles('<i/><svg class="chart "><g style="fill: red"/></svg>', "<i/>")
    '<style id="drawn">svg.chart .k0{fill: red}</style><svg class="chart "><g class="k0"/></svg>'
    """
    classes: dict[str, str] = {}
    names: dict[str, str] = {}

    def lighter(drawing: re.Match[str]) -> str:
        named = _NAME.sub(lambda m: names.setdefault(m[0], f"q{len(names)}"), drawing[0])
        return _STYLE.sub(
            lambda m: f' class="{classes.setdefault(m[1], f"k{len(classes)}")}"', named
        )

    page = _DRAWING.sub(lighter, page)
    rules = "".join(f"svg.chart .{name}{{{style}}}" for style, name in classes.items())
    return page.replace(place, f'<style id="drawn">{rules}</style>', 1)
