"""A program that is run on foreign content is bounded in time and output, and alone."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from pequod.sources.errors import TooLargeError, UnavailableError
from pequod.sources.jj.process import Bounds, Ended, Program
from waiting import eventually


def python(folder: Path, **bounds: float) -> Program:
    limits = Bounds(
        seconds=bounds.get("seconds", 30.0), output_bytes=int(bounds.get("output_bytes", 1000))
    )
    return Program(path=Path(sys.executable), environment={}, folder=folder, bounds=limits)


async def run(program: Program, script: str) -> Ended:
    return await program.run("-I", "-S", "-c", script, reference="it")


async def test_output_complaints_and_the_exit_code_are_kept(tmp_path: Path) -> None:
    script = "import sys; print('hello'); print('o\\nh', file=sys.stderr); sys.exit(3)"
    ended = await run(python(tmp_path), script)
    assert ended == Ended(3, b"hello\n", "o\\nh")


async def test_nothing_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    ended = await run(python(tmp_path), "import os; print('SECRET' in os.environ, os.getcwd())")
    assert ended.output.decode() == f"False {tmp_path}\n"


async def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"did not end within 0\.05 seconds"):
        await run(python(tmp_path, seconds=0.05), "import time; time.sleep(600)")


def _alive(pid: int) -> bool:
    """Whether a process still runs: one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_one_that_is_no_longer_wanted_is_killed_with_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: open('started', 'w').write(f'{os.getpid()} {child}')\n"
        "time.sleep(600)\n"
    )
    running = asyncio.create_task(run(python(tmp_path), script))
    pids = (await asyncio.to_thread((tmp_path / "started").read_text)).split()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: not any(_alive(int(pid)) for pid in pids), "both are gone")


async def test_one_that_says_too_much_is_killed(tmp_path: Path) -> None:
    script = "import sys\nwhile True: sys.stdout.write('x' * 100000)"
    with pytest.raises(TooLargeError, match="more than 1000 bytes"):
        await run(python(tmp_path), script)


async def test_one_that_complains_a_lot_ends_well(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.write('x' * 1000000 + 'end'); print('done')"
    ended = await run(python(tmp_path), script)
    assert (ended.code, ended.output) == (0, b"done\n")
    assert len(ended.complaint) < 400


async def test_one_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    program = Program(
        path=tmp_path / "nothing", environment={}, folder=tmp_path, bounds=Bounds(seconds=1)
    )
    with pytest.raises(UnavailableError, match="nothing cannot be started"):
        await program.run(reference="it")
