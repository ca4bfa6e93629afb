"""Commits become trees in the store, unless the very same tree is there already."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pequod.sources import keeping
from pequod.sources.credentials import Credentials
from pequod.sources.git.address import GitReference, Wanted
from pequod.sources.git.commits import read_commit
from pequod.sources.git.differences import differences
from pequod.sources.git.export import prepare
from pequod.sources.git.listing import wanted_folder
from pequod.sources.git.mirror import NAMES, CoarseError, Mirror, Way
from pequod.sources.git.mirrors import holder
from pequod.sources.git.repositories import Repositories, Result, Task
from pequod.sources.git.revisions import algorithm, content_metadata
from pequod.sources.store import Store

_REMEMBERED = 10_000
_Key = tuple[str, str, str]
"""Repository, holder of the credentials, tree: a commit of somebody else may name a tree that it
does not have, and must not get it from us."""


@dataclass(frozen=True, slots=True)
class Content:
    """A tree in the store, and what its commit says."""

    digest: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Stored:
    digest: str
    submodules: list[str]


class Contents:
    """What commits consist of."""

    def __init__(self, store: Store, repositories: Repositories) -> None:
        self._store = store
        self._limits = store.limits
        self._repositories = repositories
        self._too_large = f"blob:limit={self._limits.file_bytes + 1}"
        self._coarse: set[str] = set()
        self._stored: dict[_Key, _Stored] = {}

    async def fetch(
        self, reference: GitReference, credentials: Credentials, commit: str
    ) -> Content:
        """Have the wanted folder of a commit in the store."""
        leave_out = self._left_out(reference)
        try:
            return await self._fetched(reference, credentials, commit, leave_out)
        except CoarseError:
            content = await self._fetched(reference, credentials, commit, self._too_large)
            self._coarse.add(reference.url)
            return content

    async def compare(
        self, reference: GitReference, credentials: Credentials, between: tuple[str, str]
    ) -> list[str]:
        """The paths that differ between two commits."""

        async def task(mirror: Mirror) -> list[str]:
            return await differences(mirror, reference, between, self._limits)

        return await self.look(reference, credentials, between, task)

    async def look(
        self,
        reference: GitReference,
        credentials: Credentials,
        commits: tuple[str, ...],
        task: Task[Result],
    ) -> Result:
        """Ask something of commits and their trees, before any of their files are written."""
        leave_out = self._left_out(reference)

        async def work(mirror: Mirror, way: Way) -> Result:
            await mirror.bring(commits, way, leave_out=leave_out)
            return await task(mirror)

        kind = algorithm(commits[-1])
        return await self._repositories.work(
            reference, credentials, work, leave_out=leave_out, algorithm=kind
        )

    async def read(self, folder: Path, reference: Wanted, commit: str) -> Content:
        """Have the wanted folder of a commit in the store, from a repository on this machine."""
        take = partial(self._taken, reference=reference, commit=commit, origin=(str(folder), ""))
        return await self._repositories.read(folder, reference, take)

    async def _fetched(
        self, reference: GitReference, credentials: Credentials, commit: str, leave_out: str
    ) -> Content:
        take = partial(
            self._taken,
            reference=reference,
            commit=commit,
            origin=(reference.url, holder(credentials)),
        )

        async def work(mirror: Mirror, way: Way) -> Content:
            await mirror.bring((commit,), way, leave_out=leave_out)
            return await take(mirror, way=way if leave_out == NAMES else None)

        kind = algorithm(commit)
        return await self._repositories.work(
            reference, credentials, work, leave_out=leave_out, algorithm=kind
        )

    async def _taken(
        self,
        mirror: Mirror,
        *,
        reference: Wanted,
        commit: str,
        origin: tuple[str, str],
        way: Way | None = None,
    ) -> Content:
        found = await read_commit(mirror, commit, reference)
        top = await wanted_folder(mirror, found.tree, reference)
        key = (*origin, top)
        stored = await self._known(key) or await self._added(mirror, top, reference, way)
        self._remember(key, stored)
        return Content(stored.digest, content_metadata(found.about, stored.submodules))

    async def _known(self, key: _Key) -> _Stored | None:
        """What was made of the same tree before: most commits leave most folders as they are."""
        stored = self._stored.get(key)
        there = stored is not None and await self._store.find(stored.digest) is not None
        return stored if there else None

    async def _added(self, mirror: Mirror, top: str, reference: Wanted, way: Way | None) -> _Stored:
        ready = await prepare(mirror, top, reference, limits=self._limits, way=way)
        digest = await keeping.kept(
            self._store,
            partial(ready.write, mirror),
            reference=str(reference),
            next_step="change it in the repository",
        )
        return _Stored(digest, ready.listing.submodules)

    def _remember(self, key: _Key, stored: _Stored) -> None:
        self._stored[key] = stored
        while len(self._stored) > _REMEMBERED:
            del self._stored[next(iter(self._stored))]

    def _left_out(self, reference: GitReference) -> str:
        """All files when a folder is wanted; else those that are too large for any tree."""
        by_name = reference.path and reference.url not in self._coarse
        return NAMES if by_name else self._too_large
