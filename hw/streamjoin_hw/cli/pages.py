"""Generated pages of the documentation."""

from streamjoin_common.contract import (
    DesignParams,
    LayoutField,
    beat_bits,
    registers,
    result_layout,
    tuple_layout,
)


def registers_page(params: DesignParams) -> str:
    """Return register map and layouts of a design as Markdown."""
    terms = ", ".join(term.text for term in params.terms)
    lines = [
        "# Registers and layouts",
        "",
        f"Generated from the contract by `make docs` for the terms `{terms}`; every design's",
        "`manifest.json` holds its own. AXI4-Lite, 32 bits a register.",
        "",
        "| offset | name | access | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for register in registers(params):
        effect = f" Takes effect: {register.effect}." if register.effect else ""
        lines.append(
            f"| `{register.offset:#04x}` | `{register.name}` | {register.access} "
            f"| {register.doc}{effect} |"
        )
        for field in register.fields:
            last = field.bit + field.width - 1
            bits = str(field.bit) if field.width == 1 else f"{last}:{field.bit}"
            lines.append(f"| | `{register.name}[{bits}]` {field.name} | | {field.doc} |")
    lines += ["", "## Tuples in, `s_axis_tuples_tdata`", *_layout(tuple_layout(params))]
    lines += ["", "## Results out, `m_axis_results_tdata`", *_layout(result_layout(params))]
    return "\n".join(lines) + "\n"


def _layout(layout: tuple[LayoutField, ...]) -> list[str]:
    rows = [
        "",
        f"{beat_bits(layout)} bits a beat.",
        "",
        "| field | bits |",
        "| --- | --- |",
    ]
    return rows + [
        f"| `{field.name}` | {field.offset + field.width - 1}:{field.offset} |" for field in layout
    ]
