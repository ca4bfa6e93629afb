"""One git process: no shell, its own group, a deadline, and limits that hold while it works.

`setpriv` ties it to us: the kernel tells `timeout` when we die, however that happens, and that
ends git with all its helpers. `prlimit` bounds the files that they write, and their memory. What a
fetch adds to a repository is measured while it arrives. Whatever goes wrong is a `CommandError`;
`verdicts` says what it means.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pequod.base import tasks
from pequod.sources.git.settings import Setting, environment
from pequod.sources.limits import Limits

_TAIL = 2**13
_CHUNK = 2**16
_MEMORY = 2**31
"""What git may need besides the pack that it looks into."""
_LOOK = 0.05
_GRACE = 5.0


class CommandError(Exception):
    """A process that did not do what it was for; `complaint` is the end of what it said."""

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint)
        self.complaint = complaint


class TooSlowError(CommandError):
    """It had not ended at its deadline."""


class TooMuchError(CommandError):
    """It received or printed more than it may."""


class AbsentError(CommandError):
    """A program that is needed is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What git is to do, and with what."""

    arguments: tuple[str, ...]
    repository: Path | None = None
    settings: tuple[Setting, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    protocols: tuple[str, ...] = ()
    """Empty for whatever needs no network, and then has none."""
    stdin: bytes = b""
    records: tuple[bytes, int] | None = None
    """What ends a record of the output, and how many of them are too many."""
    output_bytes: int = 2**26
    consume: Callable[[BinaryIO], None] | None = None
    """Takes the output while it is printed, in a thread; it ends early when the process does."""


class Git:
    """The command line of git; its processes live no longer than the thread that starts them."""

    def __init__(self, home: Path, limits: Limits) -> None:
        self._home = home
        self._limits = limits
        largest = limits.transfer_bytes
        self._bounds = (
            *("setpriv", "--pdeathsig", "TERM", "--"),
            # Longer than our own deadline: for when nobody is there to keep that.
            *("timeout", "--signal=KILL", f"{limits.seconds + _GRACE:g}"),
            *("prlimit", f"--fsize={largest}", f"--as={_MEMORY + largest}", "--core=0"),
        )

    async def run(self, call: Call) -> bytes:
        """Let git do something, and yield what it prints."""
        run = await self._started(call)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await run.end()
        except TimeoutError:
            raise TooSlowError(f"it took longer than {self._limits.seconds:g} seconds") from None
        finally:
            await run.kill()

    async def _started(self, call: Call) -> "_Run":
        with tempfile.TemporaryFile(dir=self._home) as stdin:
            stdin.write(call.stdin)
            stdin.seek(0)
            if call.consume is not None:
                return await self._piped(call, stdin.fileno())
            process = await self._start(call, stdin.fileno(), asyncio.subprocess.PIPE)
            return _Run(call, process, self._limits)

    async def _piped(self, call: Call, stdin: int) -> "_Run":
        out, into = os.pipe()
        stream = os.fdopen(out, "rb", buffering=_CHUNK)
        try:
            with os.fdopen(into, "wb") as end:
                process = await self._start(call, stdin, end.fileno())
        except BaseException:
            stream.close()
            raise
        return _Run(call, process, self._limits, stream)

    async def _start(self, call: Call, stdin: int, stdout: int) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._bounds,
                "git",
                *call.arguments,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(call),
                cwd=self._home,
                # A group of its own, so that its helpers end with it.
                start_new_session=True,
                # A file that is too large becomes an error that git can report, not its death.
                restore_signals=False,
            )
        except FileNotFoundError as error:
            raise AbsentError(f"{error.filename} is not there") from error

    def _environment(self, call: Call) -> dict[str, str]:
        return environment(
            home=self._home,
            repository=call.repository,
            protocols=call.protocols,
            settings=call.settings,
            variables=call.variables,
        )


class _Run:
    """A process while it runs."""

    def __init__(
        self,
        call: Call,
        process: asyncio.subprocess.Process,
        limits: Limits,
        stream: BinaryIO | None = None,
    ) -> None:
        self._call = call
        self._process = process
        self._limits = limits
        self._excess = ""
        self._ended = False
        self._consumer = asyncio.create_task(self._consumed(stream), name="output of git")

    async def end(self) -> bytes:
        """Wait for the end, and judge it by what went wrong first."""
        watch = asyncio.create_task(self._watch(), name="growth of a repository")
        output = asyncio.create_task(self._output(), name="what git prints")
        complaint = asyncio.create_task(self._complaint(), name="what git complains about")
        try:
            await asyncio.gather(output, complaint)
            code = await self._process.wait()
            self._ended = True
        finally:
            await tasks.end(watch, output, complaint)
        if self._excess:
            raise TooMuchError(self._excess)
        if code != 0:
            raise CommandError(complaint.result() or f"git ended with code {code}")
        return output.result()

    async def kill(self) -> None:
        """End what still runs, helpers included, and wait until it has ended."""
        if not self._ended:
            self._signal()
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await self._process.communicate()
        # A thread cannot be cancelled, but it has nothing to read any more.
        await asyncio.wait((self._consumer,))
        if not self._consumer.cancelled():
            # Taken notice of here, since nobody may be waiting any more.
            self._consumer.exception()

    def _stop(self, excess: str) -> None:
        self._excess = self._excess or excess
        self._signal()

    def _signal(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _consumed(self, stream: BinaryIO | None) -> None:
        if stream is not None and self._call.consume is not None:
            with stream:
                await asyncio.to_thread(self._call.consume, stream)

    async def _output(self) -> bytes:
        if self._process.stdout is None:
            await asyncio.shield(self._consumer)
            return b""
        parts: list[bytes] = []
        size = count = 0
        longest = self._call.output_bytes
        end, most = self._call.records or (b"\0", longest)
        while part := await self._process.stdout.read(_CHUNK):
            size += len(part)
            count += part.count(end)
            if count > most:
                self._stop(f"there are more than {most} entries")
            elif size > longest:
                self._stop(f"the list is longer than {longest} bytes")
            if not self._excess:
                parts.append(part)
        return b"".join(parts)

    async def _complaint(self) -> str:
        assert self._process.stderr is not None
        end = b""
        while part := await self._process.stderr.read(_TAIL):
            end = (end + part)[-_TAIL:]
        return end.decode(errors="replace").strip()

    async def _watch(self) -> None:
        """Look at how much has arrived: a pack grows in place, under a temporary name."""
        if self._call.repository is None or not self._call.protocols:
            return
        packs = self._call.repository / "objects" / "pack"
        before = _size(packs)
        while True:
            if _size(packs) - before > self._limits.transfer_bytes:
                self._stop(f"more than {self._limits.transfer_bytes} bytes arrived")
            await asyncio.sleep(_LOOK)


def _size(folder: Path) -> int:
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_size
    return total
