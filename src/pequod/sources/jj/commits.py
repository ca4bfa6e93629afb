"""What jj writes into git: the headers of its commits, and the trees of its conflicts.

Since 0.30 a commit of jj has a header `change-id`. One with conflicts has a header `jj:trees`, and
a tree with every input of the conflict in a folder `.jjconflict-…`. Everything here is pure.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

_CHANGE_ID = re.compile(rb"[k-z]{32}")
_WHEN = re.compile(rb"> (\d{1,12}) ([+-])(\d\d)([0-5]\d)$")
_EPOCH = datetime.fromtimestamp(0, UTC)
_CONFLICT = b".jjconflict-"
_ADDED = b".jjconflict-side-"
_INDENT = b"    "


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHeader:
    """What is known about a commit without its files."""

    commit_id: str
    change_id: str | None
    """None for a commit that was not made by jj."""
    conflicted: bool
    authored_at: datetime
    description: str
    """The first line."""


def commit_headers(listing: bytes, *, change_id: str = "") -> Iterator[CommitHeader]:
    """The commits in the output of `git rev-list --header`, or those of a change.

    Reading only what can be of interest keeps thousands of them from holding up the event loop.
    """
    sign = f"\nchange-id {change_id}".encode() if change_id else b""
    for record in listing.split(b"\0"):
        if sign in record:
            commit_id, _, content = record.lstrip(b"\n").partition(b"\n")
            if commit_id:
                yield _header(commit_id.decode(), content)


def _header(commit_id: str, content: bytes) -> CommitHeader:
    head, _, message = content.partition(b"\n\n")
    # Lines that begin with a space belong to the header above, such as a signature.
    pairs = [line.partition(b" ") for line in head.split(b"\n") if not line.startswith(b" ")]
    fields: dict[bytes, bytes] = {}
    for key, _, value in pairs:
        # The first one counts: so it does for jj.
        fields.setdefault(key, value)
    change_id = fields.get(b"change-id", b"")
    first_line = message.lstrip(b"\n").partition(b"\n")[0].removeprefix(_INDENT)
    return CommitHeader(
        commit_id=commit_id,
        change_id=change_id.decode() if _CHANGE_ID.fullmatch(change_id) else None,
        conflicted=b"jj:trees" in fields,
        authored_at=_when(fields.get(b"author", b"")),
        description=first_line.decode(errors="replace"),
    )


def _when(author: bytes) -> datetime:
    """When a commit was written; the beginning of time for one that doesn't say it properly."""
    found = _WHEN.search(author)
    if found is None:
        return _EPOCH
    offset = timedelta(hours=int(found[3]), minutes=int(found[4]))
    try:
        zone = timezone(-offset if found[2] == b"-" else offset)
        return datetime.fromtimestamp(int(found[1]), zone)
    except (ValueError, OverflowError, OSError):
        return _EPOCH


def tree_entries(listing: bytes) -> dict[bytes, bytes]:
    """Path and identity of everything in the output of `git ls-tree -z`."""
    lines = (record.partition(b"\t") for record in listing.split(b"\0") if record)
    return {path: identity for identity, _, path in lines}


def conflict_trees(entries: Mapping[bytes, bytes]) -> dict[bytes, str]:
    """The inputs of a conflict among the entries of a commit's root: name and tree."""
    return {
        name: identity.rpartition(b" ")[2].decode()
        for name, identity in entries.items()
        if name.startswith(_CONFLICT)
    }


def conflicted_paths(inputs: Mapping[bytes, Mapping[bytes, bytes]]) -> list[str]:
    """The paths that the inputs of a conflict disagree about, from all files of each input."""
    votes: defaultdict[bytes, Counter[bytes]] = defaultdict(Counter)
    paths = {path for files in inputs.values() for path in files}
    for name, files in inputs.items():
        weight = 1 if name.startswith(_ADDED) else -1
        for path in paths:
            votes[path][files.get(path, b"")] += weight
    return sorted(
        path.decode(errors="replace")
        for path, counts in votes.items()
        if sum(count > 0 for count in counts.values()) > 1
    )
