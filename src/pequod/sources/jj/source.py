"""Jujutsu repositories as artifacts: those that jj users push to, and those of our own machine.

Whatever a revision is called, it becomes a commit, and the files of that come from git, by the
same code as those of any git repository. A commit with conflicts never becomes a tree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pequod.base.logs import one_line
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import UnavailableError
from pequod.sources.git.address import GitReference, Wanted, folder_of, parse
from pequod.sources.git.mirror import Mirror
from pequod.sources.git.refs import Refs, Resolved, resolve
from pequod.sources.git.source import GitSource
from pequod.sources.jj import grammar
from pequod.sources.jj.changes import Changes, pointers
from pequod.sources.jj.command import Jj
from pequod.sources.jj.commits import CommitHeader
from pequod.sources.jj.remote import header, refuse_conflicts
from pequod.sources.jj.repository import JjOperation, JjRepository

_BRANCH = "refs/heads/"
_MOST_BOOKMARKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReference:
    """A revision of a repository on this machine, and a folder in that."""

    root: Path
    ref: str
    path: str = ""

    def __str__(self) -> str:
        path = f"&path={self.path}" if self.path else ""
        return one_line(f"{self.root}?ref={self.ref}{path}")


class JjSource:
    """Jujutsu repositories; the git source that they go through is opened by its owner."""

    def __init__(self, git: GitSource, jj: Jj | None = None) -> None:
        self._git = git
        self._jj = jj
        self._changes = Changes(git)

    async def resolve(
        self, ref: str, *, credentials: Credentials = ANONYMOUS, known: Artifact | None = None
    ) -> Artifact:
        """The tree of a reference to a git remote; `known` itself when it is still what is meant.

        A name wins over a change id of the same letters; a branch over `branch@remote`, which is
        the branch of this remote, whatever name people have for that.
        """
        reference = _parsed(ref)
        meant, refs = await self._meant(reference, credentials)
        still = await self._git.still(known, reference, meant)
        if still is not None:
            return still
        look = partial(_sound, commit=meant.commit, reference=reference)
        commit = await self._git.look(reference, meant.commit, look, credentials=credentials)
        found = await self._git.fetch(reference, meant, credentials=credentials, known=known)
        return _described(found, commit.change_id, _bookmarks(refs, meant.commit))

    async def resolve_local(
        self, root: Path, revision: str, *, path: str = "", known: Artifact | None = None
    ) -> Artifact:
        """The tree of a revision in a repository of the operator's own; the caller vouches for it.

        What the working copy holds does not count before jj has made a commit of it.
        """
        reference = LocalReference(root=root, ref=revision, path=folder_of(path))
        repository = self._repository(root)
        revised = await repository.resolve(revision)
        meant = Resolved(commit=revised.commit_id, kind="")
        still = await self._git.still(known, reference, meant)
        if still is not None:
            return still
        folder = await repository.git_dir()
        look = partial(_sound, commit=meant.commit, reference=reference)
        await self._git.look_into(folder, reference, look)
        found = await self._git.read(folder, reference, meant, known=known)
        return _described(found, revised.change_id, revised.bookmarks)

    async def changed(
        self, ref: str, before: str, after: str, *, credentials: Credentials = ANONYMOUS
    ) -> list[str]:
        """The paths that differ between two commits of a remote, below the reference's path."""
        return await self._git.changed(_parsed(ref), before, after, credentials=credentials)

    async def changed_local(self, root: Path, before: str, after: str) -> list[str]:
        """The paths that differ between two commits of a repository on this machine."""
        return await self._repository(root).changed_files(before, after)

    async def operations(self, root: Path, limit: int) -> list[JjOperation]:
        """What was done to a repository on this machine, the newest first."""
        return await self._repository(root).operations(limit)

    async def _meant(
        self, reference: GitReference, credentials: Credentials
    ) -> tuple[Resolved, Refs]:
        """What a reference means, and the refs that have said so: none for a whole commit id."""
        if grammar.is_commit_id(reference.ref):
            return Resolved(commit=reference.ref, kind="commit"), Refs()
        refs = await self._git.refs(reference, credentials=credentials)
        meant = resolve(refs, reference.ref) or _at_remote(refs, reference.ref)
        if meant is None and grammar.is_change_id(reference.ref):
            commit = await self._changes.commit(reference, refs, credentials)
            meant = Resolved(commit=commit, kind="change")
        if meant is None:
            # Git knows what else it can be, or says what there is, without asking again.
            meant = await self._git.commit_of(reference, credentials=credentials, max_age=math.inf)
        return meant, refs

    def _repository(self, root: Path) -> JjRepository:
        if self._jj is None:
            raise UnavailableError(
                str(root),
                step="find the program",
                problem="a repository on this machine is read by jj, which is not there",
                next_step="put jj on PATH",
            )
        return JjRepository(self._jj, root)


def _parsed(ref: str) -> GitReference:
    reference = parse(ref.removeprefix("jj+"))
    if reference.ref and not reference.ref.startswith("refs/"):
        grammar.parse_name(reference.ref)
    return reference


def _at_remote(refs: Refs, ref: str) -> Resolved | None:
    """What `name@remote` means, and only that."""
    name, at, remote = ref.rpartition("@")
    full = f"{_BRANCH}{name}"
    commit = refs.commit(full) if at and remote and name else None
    return Resolved(commit=commit, kind="branch", name=full) if commit else None


async def _sound(mirror: Mirror, *, commit: str, reference: Wanted) -> CommitHeader:
    """What a commit says about itself; raises RefusedError when it has conflicts."""
    found = await header(mirror, commit)
    await refuse_conflicts(mirror, found, reference=str(reference))
    return found


def _bookmarks(refs: Refs, commit: str) -> list[str]:
    return sorted(
        name.removeprefix(_BRANCH)
        for name, at in pointers(refs)
        if at == commit and name.startswith(_BRANCH)
    )


def _described(found: Artifact, change_id: str | None, bookmarks: Sequence[str]) -> Artifact:
    """An artifact that also tells the change that it is, and what pointed to it."""
    about: Mapping[str, str] = {
        "change-id": change_id or "",
        "bookmarks": ", ".join(bookmarks[:_MOST_BOOKMARKS]),
    }
    said = {key: value for key, value in about.items() if value}
    return replace(found, metadata={**found.metadata, **said})
