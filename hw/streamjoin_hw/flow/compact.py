"""Emitted Verilog in fewer lines and in Verilog-2001: loops, guarded assertions, no file names.

Amaranth's backend writes a statement for each word of a memory. Verilator makes code of each, and a
design with tens of thousands of words then takes minutes to compile. The backend also names the
source file of some memories: the Verilog of one design would differ from folder to folder. It marks
registers for proofs (``streams.PAYLOAD``), which nobody else looks for. And it writes assertions as
SystemVerilog does, which a reader of Verilog-2001 refuses: they are put behind ``CHECKS_MACRO``,
which only a simulation defines.
"""

import re

CHECKS_MACRO = "STREAMJOIN_CHECKS"
"""Where it is defined, the design's assertions are part of the Verilog: then SystemVerilog."""

_CLEARED = re.compile(
    r"^(?P<indent> *)initial begin\n"
    r"(?P<words>(?: *(?P<memory>\w+)\[\d+\] = \d+'h0+;\n)(?: *(?P=memory)\[\d+\] = \d+'h0+;\n)*)"
    r"(?P=indent)end\n",
    flags=re.MULTILINE,
)
_CHECK = re.compile(
    r"^(?P<indent> *)always @\*\n"
    r"(?P=indent)  if \(.*\) begin\n"
    r"(?:(?P=indent)   +.*\n)*?"
    r"(?P=indent)    assert \(.*\);\n"
    r"(?P=indent)  +end\n",
    flags=re.MULTILINE,
)
_UNWANTED = re.compile(r'^ *\(\* (?:src = "[^"]*"|payload = 32\'d1) \*\)\n', flags=re.MULTILINE)
_WORD = re.compile(r"\[(\d+)\] = (\d+)'h")
_LOOP = re.compile(
    r"^ *initial begin : clear_(?P<memory>\w+)\n"
    r" *integer clear_(?P=memory)_word;\n"
    r" *for \(.* < (?P<words>\d+); .*\n"
    r".*\n *end\n",
    flags=re.MULTILINE,
)
LARGE_WORDS = 2048
"""Words of a memory that :func:`uncleared` leaves as it is at power-up."""


def _loop(match: re.Match[str]) -> str:
    words = _WORD.findall(match["words"])
    if [int(index) for index, _ in words] != list(range(len(words))):
        return match[0]
    indent, memory, bits = match["indent"], match["memory"], words[0][1]
    # A name of its own: the module may have a port of any plain one.
    word = f"clear_{memory}_word"
    return (
        f"{indent}initial begin : clear_{memory}\n"
        f"{indent}  integer {word};\n"
        f"{indent}  for ({word} = 0; {word} < {len(words)}; {word} = {word} + 1)\n"
        f"{indent}    {memory}[{word}] = {bits}'h0;\n"
        f"{indent}end\n"
    )


def compact(verilog: str) -> str:
    """Return Verilog of the same meaning: loops that clear memories, guarded assertions.

    Parameters
    ----------
    verilog : str
        As the backend wrote it; what has another form is left as it is.
    """
    guarded = _CHECK.sub(rf"`ifdef {CHECKS_MACRO}\n\g<0>`endif\n", _UNWANTED.sub("", verilog))
    return _CLEARED.sub(_loop, guarded)


def uncleared(verilog: str) -> str:
    """Return Verilog that does not clear large memories, for Yosys, which unrolls such loops.

    A memory takes the same cells, in minutes instead of hours where there are many words.

    Parameters
    ----------
    verilog : str
        As :func:`compact` returns it.
    """
    return _LOOP.sub(lambda match: "" if int(match["words"]) >= LARGE_WORDS else match[0], verilog)
