"""Work with a foreign repository through its mirror, once more with a new one if need be."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from pequod.sources.credentials import Credentials
from pequod.sources.errors import UnavailableError
from pequod.sources.git.access import Gate
from pequod.sources.git.address import GitReference
from pequod.sources.git.command import CommandError
from pequod.sources.git.mirror import Mirror, Way
from pequod.sources.git.mirrors import MirrorKey, Mirrors, holder
from pequod.sources.git.verdicts import BrokenError, judge

Result = TypeVar("Result")

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

    async def _once(
        self,
        reference: GitReference,
        credentials: Credentials,
        task: Callable[[Mirror, Way], Awaitable[Result]],
        key: MirrorKey,
    ) -> Result:
        try:
            async with (
                self._mirrors.holding(key) as mirror,
                self._gate.opened(reference, credentials) as access,
            ):
                return await task(mirror, Way(access=access, reference=str(reference)))
        except CommandError as error:
            raise judge(error, reference=str(reference), step="mirror") from error
        except OSError as error:
            raise UnavailableError(
                str(reference),
                step="mirror",
                problem=f"the disk does not take it: {error.strerror}",
                next_step="give it more room, or see whether it can be written to",
            ) from error
