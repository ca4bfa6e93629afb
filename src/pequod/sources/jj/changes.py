"""Which commit a change id means in a git repository that jj users push to.

A change id moves whenever its change is rewritten, but never without some ref being another: while
the refs of a repository are those of the last answer, that answer holds, and nothing is fetched.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pequod.sources.credentials import Credentials
from pequod.sources.git.address import GitReference
from pequod.sources.git.mirrors import holder
from pequod.sources.git.refs import Refs
from pequod.sources.git.source import GitSource
from pequod.sources.jj.commits import CommitHeader
from pequod.sources.jj.remote import Ref, candidates, chosen

Key = TypeVar("Key")
Value = TypeVar("Value")

_REPOSITORIES = 256
_CHANGES = 1024
_PEELED = "^{}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the history said while the refs were these."""

    refs: Refs
    commits: dict[str, tuple[CommitHeader, ...]] = field(default_factory=dict)
    """By the beginning of a change id."""


class Changes:
    """Change ids of repositories."""

    def __init__(self, git: GitSource) -> None:
        self._git = git
        self._seen: dict[tuple[str, str], _Seen] = {}

    async def commit(self, reference: GitReference, refs: Refs, credentials: Credentials) -> str:
        """The commit that the change of a reference has now; `refs` are the repository's."""
        prefix = reference.ref
        seen = self._seen_with(refs, (reference.url, holder(credentials)))
        found = seen.commits.get(prefix)
        if found is None:
            task = partial(candidates, prefix=prefix)
            found = await self._git.search(reference, task, credentials=credentials)
            seen.commits[prefix] = found
            _forget(seen.commits, _CHANGES)
        return chosen(prefix, found, pointers(refs)).commit_id

    def _seen_with(self, refs: Refs, key: tuple[str, str]) -> _Seen:
        seen = self._seen.pop(key, None)
        if seen is None or seen.refs.objects != refs.objects:
            seen = _Seen(refs)
        self._seen[key] = seen
        _forget(self._seen, _REPOSITORIES)
        return seen


def pointers(refs: Refs) -> list[Ref]:
    """Every branch and tag, and the commit that it points to, through annotated tags."""
    names = (name for name in refs.objects if not name.endswith(_PEELED))
    return [(name, refs.commit(name) or "") for name in names]


def _forget(remembered: dict[Key, Value], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]
