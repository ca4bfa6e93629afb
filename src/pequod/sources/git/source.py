"""References to git repositories become artifacts.

A poll (`commit_of`) asks for the refs, once for all users of a repository. Only a commit that is
new is fetched, into a mirror, and its folder is written into the store. Whoever asks for the same
meanwhile gets the same answer. There is no retry here: that is for whoever knows when.
"""

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from aiohttp.abc import AbstractResolver

from pequod.base.flights import Flights
from pequod.kube.addresses import AddressRule
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.git.access import Gate
from pequod.sources.git.address import GitReference, Wanted, parse
from pequod.sources.git.command import Git
from pequod.sources.git.contents import Content, Contents
from pequod.sources.git.differences import check_commits
from pequod.sources.git.githubapp import AppTokens
from pequod.sources.git.history import Histories
from pequod.sources.git.mirrors import MirrorCapacity, Mirrors, holder
from pequod.sources.git.refs import FULL, SHORT, Polls, Refs, Resolved, no_such_ref, resolve
from pequod.sources.git.repositories import Repositories, Result, Task
from pequod.sources.git.revisions import ref_metadata, renamed, revision, same_content
from pequod.sources.git.slot import Slot
from pequod.sources.git.version import check_version
from pequod.sources.keeping import artifact
from pequod.sources.store import Store

_MAX_AGE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOptions:
    """What an operator decides about git."""

    rule: AddressRule = field(default_factory=AddressRule)
    """Which addresses may be connected to."""
    capacity: MirrorCapacity = field(default_factory=MirrorCapacity)
    max_age: float = _MAX_AGE
    """How old, in seconds, the refs of a repository may be when somebody asks."""
    resolver: AbstractResolver | None = None
    """Who looks names up; the system if nobody else."""


class GitSource:
    """Repositories of other people, as artifacts in a store."""

    def __init__(self, store: Store, root: Path, options: GitOptions | None = None) -> None:
        self._store = store
        self._root = root
        self._options = options or GitOptions()
        self._limits = store.limits
        self._flights: Flights[Content] = Flights()
        self._slot: Slot | None = None

    async def open(self) -> str:
        """Take a folder for the mirrors, and see which git there is; says so."""
        self._slot = slot = await asyncio.to_thread(Slot, self._root)
        options = self._options
        git = Git(slot.home, self._limits)
        apps = AppTokens(options.rule, resolver=options.resolver)
        gate = Gate(slot.private, rule=options.rule, apps=apps, resolver=options.resolver)
        self._polls = Polls(git, gate, self._limits)
        mirrors = Mirrors(slot.mirrors, git, options.capacity)
        self._repositories = Repositories(mirrors, gate)
        self._histories = Histories(self._repositories)
        self._contents = Contents(self._store, self._repositories)
        return await check_version(git)

    def close(self) -> None:
        """Let another process have the folder."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    async def refs(
        self,
        reference: GitReference,
        *,
        credentials: Credentials = ANONYMOUS,
        max_age: float | None = None,
    ) -> Refs:
        """The branches and tags of a repository, and what they mean now."""
        age = self._options.max_age if max_age is None else max_age
        return await self._polls.refs(reference, credentials, max_age=age)

    async def commit_of(
        self,
        reference: GitReference,
        *,
        credentials: Credentials = ANONYMOUS,
        max_age: float | None = None,
    ) -> Resolved:
        """What a reference means now; nothing is fetched but refs (history for a short id)."""
        if FULL.fullmatch(reference.ref):
            return Resolved(commit=reference.ref, kind="commit")
        refs = await self.refs(reference, credentials=credentials, max_age=max_age)
        meant = resolve(refs, reference.ref)
        if meant is not None:
            return meant
        if SHORT.fullmatch(reference.ref):
            commit = await self._histories.commit(reference, credentials)
            return Resolved(commit=commit, kind="commit")
        raise no_such_ref(reference, refs)

    async def resolve(
        self,
        ref: str | GitReference,
        *,
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """The tree of a reference; `known` itself when it is still what the reference means."""
        reference = parse(ref) if isinstance(ref, str) else ref
        meant = await self.commit_of(reference, credentials=credentials)
        still = await self.still(known, reference, meant)
        if still is not None:
            return still
        return await self.fetch(reference, meant, credentials=credentials, known=known)

    async def fetch(
        self,
        reference: GitReference,
        meant: Resolved,
        *,
        credentials: Credentials = ANONYMOUS,
        known: Artifact | None = None,
    ) -> Artifact:
        """The tree of a commit that a reference was found to mean."""
        key = (reference.url, reference.path, meant.commit, holder(credentials))
        fetch = partial(self._contents.fetch, reference, credentials, meant.commit)
        content = await self._flights.share(key, fetch)
        return await self._artifact(reference, meant, content, known)

    async def read(
        self, folder: Path, reference: Wanted, meant: Resolved, *, known: Artifact | None = None
    ) -> Artifact:
        """The same from a repository on this machine, of which nothing is changed."""
        key = (folder, reference.path, meant.commit)
        read = partial(self._contents.read, folder, reference, meant.commit)
        content = await self._flights.share(key, read)
        return await self._artifact(reference, meant, content, known)

    async def search(
        self, reference: GitReference, task: Task[Result], *, credentials: Credentials = ANONYMOUS
    ) -> Result:
        """Ask something of all commits of a repository, which come without their trees."""
        return await self._histories.search(reference, credentials, task)

    async def look(
        self,
        reference: GitReference,
        commit: str,
        task: Task[Result],
        *,
        credentials: Credentials = ANONYMOUS,
    ) -> Result:
        """Ask something of a commit and its trees, before any of its files are written."""
        check_commits(reference, commit)
        return await self._contents.look(reference, credentials, (commit,), task)

    async def look_into(self, folder: Path, reference: Wanted, task: Task[Result]) -> Result:
        """Ask something of a repository on this machine."""
        return await self._repositories.read(folder, reference, task)

    async def changed(
        self,
        reference: GitReference,
        before: str,
        after: str,
        *,
        credentials: Credentials = ANONYMOUS,
    ) -> list[str]:
        """The paths that differ between two commits, below the reference's path if it has one."""
        check_commits(reference, before, after)
        return await self._contents.compare(reference, credentials, (before, after))

    async def still(
        self, known: Artifact | None, reference: Wanted, meant: Resolved
    ) -> Artifact | None:
        """What is known, under the name that it has now; None when it is not that, or gone."""
        if known is None or not same_content(known, reference, meant):
            return None
        if await self._store.find(known.digest) is None:
            return None
        return renamed(known, reference, meant)

    async def _artifact(
        self, reference: Wanted, meant: Resolved, content: Content, known: Artifact | None
    ) -> Artifact:
        named = revision(reference, meant)
        made = await artifact(self._store, content.digest, named, reference=str(reference))
        about = {**content.metadata, **ref_metadata(reference, meant, known)}
        return replace(made, metadata=about)
