"""How much of somebody else's content we are willing to take in."""

from dataclasses import dataclass

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that hold while something is received, not after."""

    tree_bytes: int = 256 * MEBIBYTE
    """All files of a tree together."""
    file_bytes: int = 64 * MEBIBYTE
    """One file."""
    files: int = 50_000
    """Files and folders of a tree."""
    depth: int = 64
    """Folders within folders."""
    path_bytes: int = 1024
    """One path."""
    transfer_bytes: int = 512 * MEBIBYTE
    """What may come over the network for one fetch."""
    refs: int = 50_000
    """Branches and tags of a repository."""
    seconds: float = 120.0
    """One fetch, from the first byte to the last."""
