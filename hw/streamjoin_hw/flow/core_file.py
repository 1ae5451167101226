"""The core file for FuseSoC: a design's files and targets in its own description language, CAPI2.

All designs have the same name and module: a system holds one of them, and a project that depends on
the core takes whichever is in its library.
"""

import json
import re
from importlib import metadata

from streamjoin_common.contract import HEADER_NAME, DesignParams

CORE_NAME = "streamjoin.core"
"""Name of the file, beside the Verilog."""


def core_identifier(module: str) -> str:
    """Return FuseSoC's name of a design, ``vendor:library:name:version``.

    Parameters
    ----------
    module : str
        Verilog module of its top level.
    """
    release = re.match(r"\d+\.\d+\.\d+", metadata.version("streamjoin"))
    assert release is not None  # versions are semantic
    return f"streamjoin:designs:{module}:{release[0]}"


def about(params: DesignParams) -> str:
    """Say in a line which design it is."""
    terms = ", ".join(term.text for term in params.terms)
    return f"Stream join, {params.design}, {terms}; digest {params.digest}"


def core_file(params: DesignParams, verilog_name: str) -> str:
    """Return a design's core file.

    Parameters
    ----------
    params : DesignParams
        The design.
    verilog_name : str
        Its Verilog file, which is named after the top level's module.
    """
    module = verilog_name.removesuffix(".v")
    # JSON's strings are YAML's, too.
    name, description = map(json.dumps, (core_identifier(module), about(params)))
    return f"""\
CAPI=2:
# Generated; its parameters are in manifest.json.
name: {name}
description: {description}
license: BSD-3-Clause

filesets:
  rtl:
    files: [{verilog_name}]
    file_type: verilogSource-2005
  header:
    files:
      - {HEADER_NAME}: {{file_type: cSource, is_include_file: true}}

targets:
  default:
    description: The design and its C header, for cores that depend on it
    filesets: [rtl, header]
    toplevel: {module}
  lint:
    description: Reads the design with Verilator
    filesets: [rtl]
    toplevel: {module}
    flow: lint
    flow_options:
      tool: verilator
"""
