"""The one thing that every source yields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A tree of files that never changes, and where it came from."""

    digest: str
    """`sha256:…` of the tree: names and contents of its files, nothing else."""
    revision: str
    """What the reference meant: `main@sha1:…`, `v1@sha256:…`, a version; never a secret."""
    tree: Path
    """The folder with the files; read-only, and there for as long as somebody uses it."""
    fetched_at: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What a source adds for people: a commit's author, an annotation of an OCI manifest."""
