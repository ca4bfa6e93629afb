"""One process of the evaluator: started, asked one thing at a time, killed when it must be."""

import asyncio
import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from pequod.base.logs import one_line
from pequod.base.tasks import end
from pequod.evaluator import frames
from pequod.evaluator.errors import BrokenError, EvaluationError, OverLimitError

_log = structlog.get_logger()
_TAIL = 2**14
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_STARVED = 0.1
"""Who got less of its time than this from the machine has not had a chance."""
_START = 30.0
_HOME = "pequod-evaluator-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one evaluation may use up, and when a worker has served long enough."""

    seconds: float = 10.0
    """Of wall time; a request may ask for less."""
    cpu_seconds: int = 20
    memory_bytes: int = 1024 * 2**20
    """Of address space, on top of what the program needs itself."""
    output_bytes: int = 32 * 2**20
    requests: int = 1000
    """After so many a worker is replaced."""
    resident_bytes: int = 384 * 2**20
    """A worker that still holds more than this after a request is replaced."""
    idle_seconds: float = 60.0
    """A worker that nobody asks for so long is ended: the next one is there in a moment."""


def _home() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_HOME))
    except OSError as error:
        raise BrokenError(f"there is no place for a worker: {error.strerror}") from error


def sweep_homes() -> None:
    """Remove the homes of workers whose parent was killed before it could."""
    used = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            used.add(process.joinpath("cwd").readlink())
    for home in Path(tempfile.gettempdir()).glob(f"{_HOME}*"):
        with suppress(OSError):
            if home not in used and time.time() - home.stat().st_mtime > _START:
                shutil.rmtree(home, ignore_errors=True)


class Worker:
    """A process that has answered at least once."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path, bounds: Bounds) -> None:
        self._process = process
        self._home = home
        self._bounds = bounds
        self._complaints = b""
        self._listening = asyncio.create_task(self._listen(), name="evaluator complaints")
        self.served = 0
        self.answered = True
        """Whether it has answered the last request, and so waits for another."""

    @classmethod
    async def start(cls, command: Sequence[str], bounds: Bounds) -> "Worker":
        """Start a process with nothing of ours in its environment."""
        home = _home()
        limits = (f"--memory={bounds.memory_bytes}", f"--largest={bounds.output_bytes}")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                *limits,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"HOME": str(home), "TMPDIR": str(home)},
                cwd=home,
                start_new_session=True,
            )
        except BaseException as error:
            shutil.rmtree(home, ignore_errors=True)
            if isinstance(error, OSError):
                text = f"{command[0]} cannot be started: {error.strerror}"
                raise BrokenError(text) from error
            raise
        worker = cls(process, home, bounds)
        try:
            await worker.ask("ping", {}, seconds=_START)
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether nobody has ended it while it waited for work."""
        return self._process.returncode is None

    @property
    def worn(self) -> bool:
        """Whether another should take its place."""
        return self.served >= self._bounds.requests or self.resident() > self._bounds.resident_bytes

    def resident(self) -> int:
        """Bytes of memory that it holds."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    async def ask(self, verb: str, params: object, *, seconds: float) -> msgspec.Raw:
        """The result of one request.

        After an OverLimitError or a BrokenError the worker is of no use any more. Whoever is
        cancelled while waiting leaves one behind that is busy: it must be killed as well.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        cpu = min(self._bounds.cpu_seconds, max(1, round(seconds * 2)))
        frame = frames.request(verb, params, cpu_seconds=cpu)
        largest = self._bounds.output_bytes
        if len(frame) > largest:
            raise OverLimitError(f"the request has {len(frame)} bytes and {largest} are allowed")
        self.answered = False
        used = self._processor_seconds()
        self._process.stdin.write(frame)
        try:
            async with asyncio.timeout(seconds):
                await self._process.stdin.drain()
                answer = await frames.response(self._process.stdout, largest=largest)
        except TimeoutError:
            raise self._too_late(seconds, self._processor_seconds() - used) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._death() from None
        self.served += 1
        self.answered = True
        if answer.failure is not None:
            raise answer.failure.error()
        return answer.result

    def _processor_seconds(self) -> float:
        """Of all its threads, since it began."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return math.inf
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _too_late(self, seconds: float, used: float) -> EvaluationError:
        """Whose fault it is: of what was evaluated, or of a machine that had no time for it.

        The kernel counts in hundredths of a second, too coarse to judge by within less than one.
        """
        if seconds >= 1 and used < seconds * _STARVED:
            return BrokenError(
                f"it got {used:.1f} seconds of processor time in {seconds:g}: the machine is busy"
            )
        return OverLimitError(f"it was not done within {seconds:g} seconds")

    async def kill(self) -> None:
        """End the process and what it left behind."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        await end(self._listening)
        self._process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001 -- or it warns
        await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(_TAIL):
            self._complaints = (self._complaints + part)[:_TAIL]

    async def _death(self) -> EvaluationError:
        """Why a worker is gone."""
        code = await self._process.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), 1.0)
        text = self._complaints.decode(errors="replace")
        if -code == signal.SIGKILL:
            # Not by us, and so perhaps because of somebody else's evaluation.
            return BrokenError("it was killed, as a node does that has too little memory")
        if -code == signal.SIGXCPU or "SIGXCPU" in text:
            return OverLimitError(f"it used more than {self._bounds.cpu_seconds} seconds of CPU")
        if "out of memory" in text or "cannot allocate memory" in text:
            return OverLimitError(f"it needed more than {self._bounds.memory_bytes >> 20} MiB")
        if "stack exceeds" in text or "stack overflow" in text:
            return OverLimitError("it went too deep: something refers to itself without end")
        _log.error("evaluator died", code=code, said=one_line(text, 500))
        return BrokenError(f"the evaluator ended with code {code}")
