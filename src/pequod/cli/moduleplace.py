"""What one may write as MODULE on the command line."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pequod.sources.resolver import Reference

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

    def reference(self) -> "Reference | None":
        """As sources name it; None for a folder, which only this machine has."""
        from pequod.sources.resolver import Reference

        if self.kind == "folder":
            return None
        plain = self.ref.removeprefix("oci://").removeprefix("git+")
        return Reference(type=self.kind, ref=plain)


def place_of(text: str) -> Place:
    """Read MODULE: a folder unless it begins with what names another kind of place."""
    for prefix, kind in _PREFIXES.items():
        if text.startswith(prefix):
            return Place(kind, text.removeprefix(prefix) if kind == "embedded" else text)
    return Place("folder", text)
