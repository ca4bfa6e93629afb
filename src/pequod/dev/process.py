"""One program of a control plane, running: tied to us, its output in a file of its own."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pequod.dev.commands import environment

_TETHER = Path(__file__).with_name("tether.py")
_PATIENCE = 5.0
_POLL = 0.01


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone.

    With the pid it names one process for good: a pid alone may have been given away again.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[18])


def kill_if_same(pid: int, started: int) -> None:
    """Kill a process, unless its pid has come to mean another one."""
    if start_time(pid) == started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until_gone(pids: Iterable[int]) -> None:
    """Wait until the kernel has ended processes that were killed; it does not take long."""
    deadline = time.monotonic() + _PATIENCE
    for pid in pids:
        while start_time(pid) is not None and time.monotonic() < deadline:
            time.sleep(_POLL)


@dataclass(kw_only=True)
class Process:
    """A running program. It is killed, never asked: what it wrote is thrown away with it."""

    name: str
    pid: int
    log: Path
    _handle: asyncio.subprocess.Process = field(repr=False)

    @classmethod
    async def start(cls, name: str, command: Sequence[str], *, log: Path) -> "Process":
        """Start a program whose life ends with ours at the latest."""
        with log.open("ab") as output:
            handle = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(_TETHER),
                str(os.getpid()),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(),
                # A Ctrl-C at the terminal is for us; we decide about the others.
                start_new_session=True,
            )
        return cls(name=name, pid=handle.pid, log=log, _handle=handle)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._handle.returncode

    async def wait(self) -> int:
        """Wait until it has ended, however long that takes."""
        return await self._handle.wait()

    async def kill(self) -> None:
        """End it now."""
        if self._handle.returncode is None:
            with suppress(ProcessLookupError):
                self._handle.kill()
            await self._handle.wait()

    def last_words(self, lines: int = 5) -> str:
        """The end of its log, for a person who wants to know why."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
