"""Programs that are run on other people's content: no shell, no environment but ours, and bounds.

One that takes too long, says too much or is no longer waited for is killed, with what it started.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pequod.base.logs import one_line
from pequod.sources.errors import TooLargeError, UnavailableError
from pequod.sources.limits import MEBIBYTE

_PIECE = 2**16
_TAIL = 2**12
_LONGEST = 300
_GRACE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one run may take."""

    seconds: float = 60.0
    output_bytes: int = 64 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and what it printed."""

    code: int
    output: bytes
    complaint: str
    """The end of its standard error, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, and everything around it that stays the same."""

    path: Path
    environment: Mapping[str, str]
    """All of it: nothing is inherited."""
    folder: Path
    """Where it runs."""
    bounds: Bounds

    async def run(self, *arguments: str, reference: str) -> Ended:
        """Run it to its end; the caller decides what its exit code means."""
        process = await self._start(arguments, reference)
        try:
            async with asyncio.timeout(self.bounds.seconds):
                output, complaint = await self._both(process)
                code = await process.wait()
        except BaseException as error:
            await _end(process)
            if isinstance(error, TimeoutError):
                late = f"did not end within {self.bounds.seconds:g} seconds"
                raise self._failure(reference, late) from None
            raise
        if len(output) > self.bounds.output_bytes:
            raise TooLargeError(
                reference,
                step=self.path.name,
                problem=f"more than {self.bounds.output_bytes} bytes of answer",
                next_step="use a smaller repository, or a revision with fewer files",
            )
        return Ended(code, output, one_line(complaint.decode(errors="replace").strip(), _LONGEST))

    async def _start(
        self, arguments: tuple[str, ...], reference: str
    ) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                self.path,
                *arguments,
                cwd=self.folder,
                env=dict(self.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise self._failure(reference, f"cannot be started: {error.strerror}") from error

    async def _both(self, process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
        assert process.stdout is not None, "asked for as a pipe"
        assert process.stderr is not None, "asked for as a pipe"
        return await asyncio.gather(self._head(process, process.stdout), _tail(process.stderr))

    async def _head(
        self, process: asyncio.subprocess.Process, stream: asyncio.StreamReader
    ) -> bytes:
        """Everything, or a little more than is allowed; read to the end, so that there is one."""
        output = bytearray()
        while piece := await stream.read(_PIECE):
            if len(output) <= self.bounds.output_bytes:
                output += piece
            if len(output) > self.bounds.output_bytes:
                _kill(process)
        return bytes(output)

    def _failure(self, reference: str, problem: str) -> UnavailableError:
        return UnavailableError(
            reference,
            step=self.path.name,
            problem=f"{self.path.name} {problem}",
            next_step="it is tried again; look at the load and the programs of this machine",
        )


async def _tail(stream: asyncio.StreamReader) -> bytes:
    end = b""
    while piece := await stream.read(_TAIL):
        end = (end + piece)[-_TAIL:]
    return end


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a program with what it has started, but don't wait for what hides from that."""
    assert process.stdout is not None, "asked for as a pipe"
    assert process.stderr is not None, "asked for as a pipe"
    _kill(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await asyncio.gather(_tail(process.stdout), _tail(process.stderr), process.wait())


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
