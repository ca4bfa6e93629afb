"""Work with a foreign repository through its mirror, once more with a new one if need be."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import structlog

from pequod.sources.credentials import Credentials
from pequod.sources.errors import UnavailableError
from pequod.sources.git.access import Gate
from pequod.sources.git.address import GitReference, Wanted
from pequod.sources.git.command import CommandError
from pequod.sources.git.mirror import Mirror, Way
from pequod.sources.git.mirrors import MirrorKey, Mirrors, holder
from pequod.sources.git.verdicts import BrokenError, judge

Result = TypeVar("Result")
Task = Callable[[Mirror], Awaitable[Result]]
"""Something to ask of a repository; it only reads."""

_log = structlog.get_logger()


class Repositories:
    """Foreign repositories."""

    def __init__(self, mirrors: Mirrors, gate: Gate) -> None:
        self._mirrors = mirrors
        self._gate = gate

    async def work(
        self,
        reference: GitReference,
        credentials: Credentials,
        task: Callable[[Mirror, Way], Awaitable[Result]],
        *,
        leave_out: str,
        algorithm: str = "sha1",
    ) -> Result:
        """Do something with a mirror, alone; a damaged one is replaced, and it is done again."""
        key = MirrorKey(
            url=reference.url,
            holder=holder(credentials),
            leave_out=leave_out,
            algorithm=algorithm,
        )
        try:
            return await self._once(reference, credentials, task, key)
        except BrokenError as error:
            _log.warning("mirror thrown away", url=reference.url, problem=str(error))
        try:
            return await self._once(reference, credentials, task, key)
        except BrokenError as error:
            raise UnavailableError(
                str(reference),
                step="mirror",
                problem=f"what was fetched cannot be read ({str(error)[:200]})",
                next_step="see whether the disk is full, and whether `git fsck` accepts the origin",
            ) from error

    async def read(self, folder: Path, reference: Wanted, task: Task[Result]) -> Result:
        """Ask something of a repository on this machine, which stays as it is."""
        try:
            with _told(reference, "repository"):
                return await task(self._mirrors.reading(folder))
        except BrokenError as error:
            raise UnavailableError(
                str(reference),
                step="repository",
                problem=f"the git repository {folder} cannot be read ({str(error)[:200]})",
                next_step="run `git fsck` in it, and see whether the operator may read it",
            ) from error

    async def _once(
        self,
        reference: GitReference,
        credentials: Credentials,
        task: Callable[[Mirror, Way], Awaitable[Result]],
        key: MirrorKey,
    ) -> Result:
        with _told(reference, "mirror"):
            async with (
                self._mirrors.holding(key) as mirror,
                self._gate.opened(reference, credentials) as access,
            ):
                return await task(mirror, Way(access=access, reference=str(reference)))


@contextmanager
def _told(reference: Wanted, step: str) -> Iterator[None]:
    """Tell failures of git and of the disk as those of a reference."""
    try:
        yield
    except CommandError as error:
        raise judge(error, reference=str(reference), step=step) from error
    except OSError as error:
        raise UnavailableError(
            str(reference),
            step=step,
            problem=f"the disk does not take it: {error.strerror}",
            next_step="give it more room, or see whether it can be written to",
        ) from error
