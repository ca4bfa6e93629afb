"""What people may write for a revision, and the revsets that we write for it.

Text of others never becomes a revset: it stands in one as a quoted string, after it has passed
the rules that git has for the names of refs; or it consists of the letters of an id.
"""

import re
from dataclasses import dataclass

from pequod.base.logs import one_line
from pequod.sources.errors import BadReferenceError

_CHANGE_ID = re.compile(r"[k-z]{1,32}")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_IN_A_NAME = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029~^:?*\[\\\ud800-\udfff]|\.\.|@\{|//")
_LONGEST = 255


def is_change_id(text: str) -> bool:
    """Whether a text can be a change id, or the beginning of one."""
    return _CHANGE_ID.fullmatch(text) is not None


def is_commit_id(text: str) -> bool:
    """Whether a text is a whole commit id."""
    return _COMMIT_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What a revision can mean when it is taken for a name; empty for what it cannot."""

    tag: str = ""
    bookmark: str = ""
    remote_bookmark: str = ""
    remote: str = ""

    def revset(self) -> str:
        """The commits that tags and bookmarks of that name point to."""
        parts = []
        if self.tag:
            parts.append(f"tags(exact:{quoted(self.tag)})")
        if self.bookmark:
            parts.append(f"bookmarks(exact:{quoted(self.bookmark)})")
        if self.remote:
            name, remote = quoted(self.remote_bookmark), quoted(self.remote)
            parts.append(f"remote_bookmarks(exact:{name}, remote=exact:{remote})")
        return " | ".join(parts)


def parse_name(revision: str) -> Name:
    """What a revision names; BadReferenceError when that is nothing."""
    problem = _problem(revision)
    if problem is not None:
        raise _bad(revision, problem)
    if not revision.startswith("refs/"):
        name, at, remote = revision.rpartition("@")
        if not at:
            return Name(tag=revision, bookmark=revision)
        return Name(tag=revision, bookmark=revision, remote_bookmark=name, remote=remote)
    _, kind, rest = (*revision.split("/", 2), "", "")[:3]
    remote, _, name = rest.partition("/")
    if kind == "heads" and rest:
        return Name(bookmark=rest)
    if kind == "tags" and rest:
        return Name(tag=rest)
    if kind == "remotes" and remote and name:
        return Name(remote_bookmark=name, remote=remote)
    raise _bad(revision, "it is neither below refs/heads nor refs/tags nor refs/remotes")


def _problem(revision: str) -> str | None:
    """Why a text cannot be the name of a ref; these are git's rules, and no leading dash."""
    parts = revision.split("/")
    problems = {
        "it is empty": not revision,
        "it is too long": len(revision) > _LONGEST,
        "it begins with a dash": revision.startswith("-"),
        "it has characters that no bookmark, tag or id can have": _NOT_IN_A_NAME.search(revision),
        "the working copy of a person is not a revision that lasts": (
            revision.startswith("@") or revision.endswith("@")
        ),
        "a part of it is empty, begins or ends with a dot, or ends with .lock": any(
            not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts
        ),
    }
    return next((problem for problem, found in problems.items() if found), None)


def _bad(revision: str, problem: str) -> BadReferenceError:
    shown = one_line(revision, 80).encode(errors="backslashreplace").decode()
    return BadReferenceError(
        shown or "''",
        step="read the revision",
        problem=problem,
        next_step="name a change id, a bookmark, bookmark@remote, a tag or a whole commit id",
    )


def quoted(text: str) -> str:
    """A string literal of the revset language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def change_revset(prefix: str) -> str:
    """The visible commits of a change."""
    assert is_change_id(prefix), prefix
    return f"present(change_id({quoted(prefix)}))"


def commit_revset(commit_id: str) -> str:
    """One commit, or none."""
    assert is_commit_id(commit_id), commit_id
    return f"present(commit_id({quoted(commit_id)}))"
