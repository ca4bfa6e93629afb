"""What a commit says about itself, read without asking git to format it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pequod.base.logs import one_line
from pequod.sources.errors import MissingError
from pequod.sources.git.address import Wanted
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.verdicts import BrokenError

_AUTHOR = re.compile(r"author (?P<name>.*?) ?<[^>]*> (?P<seconds>\d{1,12}) [+-]\d{4}")
_TREE = re.compile(r"tree (?P<tree>[0-9a-f]{40,64})\n")
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's tree, and what there is to say about it."""

    tree: str
    about: Mapping[str, str]


async def read_commit(mirror: Mirror, commit: str, reference: Wanted) -> Commit:
    """Read a commit that was fetched; raises when it is something else."""
    output = await mirror.read("cat-file", "--batch", stdin=f"{commit}\n".encode())
    head, _, body = output.decode(errors="replace").partition("\n")
    kind = head.split(" ")[1]
    if kind == "missing":
        raise BrokenError("a commit is no longer there")
    if kind != "commit":
        raise MissingError(
            str(reference),
            step="commit",
            problem=f"{commit} is a {kind}, not a commit",
            next_step="write a branch, a tag of a commit, or a commit id",
        )
    return Commit(_tree(body), described(body))


def _tree(body: str) -> str:
    found = _TREE.match(body)
    if found is None:
        raise BrokenError("a commit has no tree")
    return found["tree"]


def described(body: str) -> Mapping[str, str]:
    """The author, the date and the first line of the message."""
    headers, _, message = body.partition("\n\n")
    found = {"subject": one_line(message.strip().partition("\n")[0], _LONGEST)}
    for line in headers.split("\n"):
        if author := _AUTHOR.fullmatch(line):
            found["author"] = one_line(author["name"], _LONGEST)
            found["authored"] = _date(int(author["seconds"]))
    return {key: value for key, value in found.items() if value}


def _date(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return ""
