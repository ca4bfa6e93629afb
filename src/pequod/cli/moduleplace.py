"""What one may write as MODULE on the command line."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["folder", "embedded", "oci", "git"]

_PREFIXES: dict[str, Kind] = {
    "embedded:": "embedded",
    "oci://": "oci",
    "git+https://": "git",
    "git+ssh://": "git",
    "git+http://": "git",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of place, and what names it there."""

    kind: Kind
    ref: str


def place_of(text: str) -> Place:
    """Read MODULE: a folder unless it begins with what names another kind of place."""
    for prefix, kind in _PREFIXES.items():
        if text.startswith(prefix):
            return Place(kind, text.removeprefix(prefix) if kind == "embedded" else text)
    return Place("folder", text)
