"""References to git repositories become artifacts.

A poll (`commit_of`) asks for the refs, once for all users of a repository. Only a commit that is
new is fetched, into a mirror, and its folder is written into the store. Whoever asks for the same
meanwhile gets the same answer. There is no retry here: that is for whoever knows when.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from aiohttp.abc import AbstractResolver

from pequod.base.flights import Flights
from pequod.kube.addresses import AddressRule
from pequod.sources.artifact import Artifact
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import UnavailableError
from pequod.sources.git.access import Gate
from pequod.sources.git.address import GitReference, parse
from pequod.sources.git.command import Git
from pequod.sources.git.contents import Content, Contents
from pequod.sources.git.differences import check_commits
from pequod.sources.git.githubapp import AppTokens
from pequod.sources.git.history import Histories
from pequod.sources.git.mirrors import MirrorCapacity, Mirrors, holder
from pequod.sources.git.refs import FULL, SHORT, Polls, Resolved, no_such_ref, resolve
from pequod.sources.git.repositories import Repositories
from pequod.sources.git.revisions import ref_metadata, renamed, revision, same_content
from pequod.sources.git.slot import Slot
from pequod.sources.git.version import check_version
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
        repositories = Repositories(mirrors, gate)
        self._histories = Histories(repositories)
        self._contents = Contents(self._store, repositories)
        return await check_version(git)

    def close(self) -> None:
        """Let another process have the folder."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None

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
        age = self._options.max_age if max_age is None else max_age
        refs = await self._polls.refs(reference, credentials, max_age=age)
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
        if known is not None and same_content(known, reference, meant):
            still = await self._still(known, reference, meant)
            if still is not None:
                return still
        key = (reference.url, reference.path, meant.commit, holder(credentials))
        fetch = partial(self._contents.fetch, reference, credentials, meant.commit)
        content = await self._flights.share(key, fetch)
        return await self._artifact(reference, meant, content, known)

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

    async def _still(
        self, known: Artifact, reference: GitReference, meant: Resolved
    ) -> Artifact | None:
        """What is known, under the name that it has now; None when its tree is gone."""
        if await self._store.find(known.digest) is None:
            return None
        return renamed(known, reference, meant)

    async def _artifact(
        self, reference: GitReference, meant: Resolved, content: Content, known: Artifact | None
    ) -> Artifact:
        place = await self._store.find(content.digest)
        if place is None:
            raise UnavailableError(
                str(reference),
                step="store",
                problem="the tree was removed before it could be used",
                next_step="give the store more room",
            )
        return Artifact(
            digest=content.digest,
            revision=revision(reference, meant),
            tree=place,
            fetched_at=datetime.now(UTC),
            metadata={**content.metadata, **ref_metadata(reference, meant, known)},
        )
