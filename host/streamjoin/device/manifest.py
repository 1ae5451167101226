"""The manifest beside a bitstream: which design it holds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError
from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import DocumentError, read_json

MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest.

    Attributes
    ----------
    params : DesignParams
        The design.
    facts : dict
        All of it, as JSON values.
    """

    params: DesignParams
    facts: dict[str, Any]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises
    ------
    InputError
        If it is missing, invalid, or written by another version of the interface.
    """
    try:
        facts = read_json(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): it must lie beside the bitstream, from the "
            "same build"
        ) from None
    except DocumentError as error:
        raise InputError(f"{path} is no manifest: it {error.reason}") from None
    try:
        params, digest = DesignParams.from_dict(facts["params"]), facts["digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is no manifest of a design: {error}") from None
    if digest != params.digest:
        raise InputError(
            f"{path} names the digest {digest} and its parameters have {params.digest}: it was "
            "written by another version; build the bitstream anew or install that version"
        )
    return Manifest(params, facts)
