"""One bare repository of our own for each foreign one, with as little in it as possible.

A commit is fetched by its id, without its history (`--depth=1`) and without what is not needed:
for a whole tree everything but files that are too large anyway, for a folder only the names, and
then the files of that folder in one more request. Every commit that we have is a ref, so that the
next fetch tells the server and gets the difference.

The remote and its filter are given to each command and not written down: whatever reads a mirror
knows of no server, and a missing object is an error instead of a connection.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pequod.sources.errors import MissingError, SourceError
from pequod.sources.git.access import Access
from pequod.sources.git.command import Call, CommandError, Git
from pequod.sources.git.verdicts import BrokenError, is_broken, judge

COMMITS = "tree:0"
NAMES = "blob:none"
_KEPT = "refs/pequod"
_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
    *("--no-show-forced-updates", "--recurse-submodules=no"),
)
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class CoarseError(Exception):
    """The server speaks an old protocol, in which only whole commits can be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to reach the repository of a mirror, and whom to tell when that fails."""

    access: Access
    reference: str


class Mirror:
    """A repository of ours; used by one at a time."""

    def __init__(self, folder: Path, git: Git, *, fresh: bool) -> None:
        self._folder = folder
        self._git = git
        self._fresh = fresh

    def has(self, commit: str) -> bool:
        """Whether a commit was fetched before."""
        assert _OBJECT.fullmatch(commit), commit
        return (self._folder / _KEPT / commit).exists()

    async def bring(self, commits: Iterable[str], way: Way, *, leave_out: str) -> None:
        """Fetch commits that are not there yet, and their trees."""
        wanted = [commit for commit in dict.fromkeys(commits) if not self.has(commit)]
        if wanted:
            specs = "".join(f"+{commit}:{_KEPT}/{commit}\n" for commit in wanted)
            await self._fetch(("--depth=1",), specs, way, leave_out)

    async def bring_objects(self, objects: Iterable[str], way: Way) -> None:
        """Fetch single objects, all in one request; raises CoarseError when there is no way to."""
        wanted = "".join(f"{one}\n" for one in objects)
        settings = (("fetch.negotiationAlgorithm", "noop"),)
        try:
            await self._fetch((), wanted, way, NAMES, settings)
        except MissingError as error:
            raise CoarseError(str(error)) from error

    async def bring_history(self, way: Way) -> None:
        """Fetch every commit of every branch and tag, and nothing else of them."""
        specs = "+refs/heads/*:refs/heads/*\n+refs/tags/*:refs/tags/*\n"
        await self._fetch(("--prune",), specs, way, COMMITS)

    async def read(
        self,
        *arguments: str,
        stdin: bytes = b"",
        records: tuple[bytes, int] | None = None,
        consume: Callable[[BinaryIO], None] | None = None,
    ) -> bytes:
        """Ask git about what is here; raises TooMuchError when the answer is too long."""
        call = Call(
            arguments=arguments,
            repository=self._folder,
            stdin=stdin,
            records=records,
            consume=consume,
        )
        try:
            return await self._git.run(call)
        except CommandError as error:
            if type(error) is CommandError:
                raise BrokenError(error.complaint) from error
            raise

    async def _fetch(
        self,
        options: tuple[str, ...],
        specs: str,
        way: Way,
        leave_out: str,
        settings: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._tidy()
        partial = (
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", leave_out),
        )
        call = Call(
            arguments=(*_FETCH, *options, "--stdin", "--end-of-options", "origin"),
            repository=self._folder,
            settings=(*way.access.settings, *partial, *settings),
            variables=way.access.variables,
            protocols=way.access.protocols,
            stdin=specs.encode(),
        )
        try:
            await self._git.run(call)
        except CommandError as error:
            raise self._failure(error, way) from error
        finally:
            self._tidy()

    def _failure(self, error: CommandError, way: Way) -> BrokenError | SourceError:
        if not self._fresh and is_broken(error):
            return BrokenError(error.complaint)
        secrets = way.access.secrets
        return judge(error, reference=way.reference, step="fetch", secrets=secrets)

    def _tidy(self) -> None:
        """Remove what a fetch that was killed has left, even by an earlier process."""
        for pattern in ("*.lock", f"{_KEPT}/*.lock", "objects/pack/tmp_*"):
            for leftover in self._folder.glob(pattern):
                leftover.unlink(missing_ok=True)
