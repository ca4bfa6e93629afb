"""Programs that cannot outlive us, and programs that cannot be kept running."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from instances import eventually, runs
from pequod.dev import keeper, tether
from pequod.dev.failure import DevError
from pequod.dev.keeper import Component, Keeper, PortTakenError
from pequod.dev.layout import Layout
from pequod.dev.process import Process, kill_if_same, start_time

PARENT = """
import os, subprocess, sys
tether = [sys.executable, "-I", "-S", sys.argv[1], str(os.getpid())]
child = subprocess.Popen([*tether, "sleep", "60"])
print(child.pid, flush=True)
child.wait()
"""


def test_a_tethered_program_dies_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, tether.__file__],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout as output:
        child = int(output.readline())
    eventually(lambda: b"sleep" in Path(f"/proc/{child}/cmdline").read_bytes())
    parent.kill()
    parent.wait()
    eventually(lambda: not runs(child))


def test_a_program_whose_parent_is_gone_already_does_not_start() -> None:
    command = [sys.executable, "-I", "-S", tether.__file__, "1", "touch", "/nowhere"]
    result = subprocess.run(command, check=False, capture_output=True)
    assert result.returncode == 1
    assert result.stderr == b""


async def test_a_process_is_known_by_pid_and_start_time(tmp_path: Path) -> None:
    process = await Process.start("sleeper", ("sleep", "60"), log=tmp_path / "log")
    started = start_time(process.pid)
    assert started is not None
    kill_if_same(process.pid, started - 1)
    assert process.exit_code is None
    kill_if_same(process.pid, started)
    assert await process.wait() == -signal.SIGKILL
    assert start_time(process.pid) is None
    kill_if_same(process.pid, started)


async def test_what_a_program_says_last_can_be_read(tmp_path: Path) -> None:
    command = ("printf", r"1\n2\n3\n4\n5\n6\n")
    process = await Process.start("counter", command, log=tmp_path / "log")
    assert await process.wait() == 0
    assert process.last_words(2) == "5\n6"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "instance")
    layout.create()
    return layout


def _keeper(layout: Layout, *command: str, restarted: bool = True) -> Keeper:
    component = Component(name="part", command=command, restarted=restarted)
    return Keeper(component, layout, lambda: None)


async def test_a_component_that_ends_is_started_again(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "RESTART_DELAY", 0.01)
    kept = _keeper(layout, "sleep", "60")
    running = asyncio.create_task(kept.run())
    await kept.started.wait()
    assert kept.process is not None
    first = kept.process.pid
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(10):
        while kept.process.pid == first:
            await asyncio.sleep(0.01)
    second = kept.process.pid
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not runs(second)


async def test_a_component_that_keeps_ending_is_given_up_with_its_last_words(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "RESTART_DELAY", 0.0)
    with pytest.raises(DevError, match="part keeps ending, last with exit code 0:\nbad news"):
        await _keeper(layout, "echo", "bad news").run()


async def test_a_component_that_finds_its_port_taken_says_so_at_once(layout: Layout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        component = Component(name="part", command=("false",), listens=(taken.getsockname(),))
        with pytest.raises(PortTakenError, match=r"part needs 127.0.0.1:.*, which another program"):
            await Keeper(component, layout, lambda: None).run()


async def test_the_end_of_what_cannot_be_restarted_is_the_end(layout: Layout) -> None:
    with pytest.raises(DevError, match="part ended with exit code 1"):
        await _keeper(layout, "false", restarted=False).run()
