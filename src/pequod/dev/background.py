"""A control plane that outlives the command that started it."""

import asyncio
import subprocess
import sys
import tempfile

from pequod.dev import instances
from pequod.dev.failure import DevError
from pequod.dev.instances import Instance, State
from pequod.dev.wish import Wish

_POLL = 0.05
_END_TIMEOUT = 30.0


async def start_detached(wish: Wish) -> Instance:
    """Start the same command in a session of its own; return once it is ready."""
    with tempfile.TemporaryFile() as said:
        # Not asyncio's: its processes are killed when the event loop that started them is closed.
        child = subprocess.Popen(  # noqa: ASYNC220 -- starting it takes a moment only
            _command(wish),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                instance = _ready_instance(wish.name, child.pid)
                if instance is not None:
                    return instance
                await asyncio.sleep(_POLL)
        except BaseException:
            child.terminate()
            await asyncio.to_thread(child.wait)
            raise
        said.seek(0)
        raise _failure(said.read().decode(errors="replace"))


def _failure(said: str) -> DevError:
    """What the child said when it failed, in our own words only when it said nothing."""
    _, _, text = said.strip().rpartition("error: ")
    problem, _, next_step = text.rpartition("\n")
    if problem:
        return DevError(problem, next_step=next_step)
    return DevError(
        "the control plane ended before it was ready",
        next_step="Run it without --detach to see why.",
    )


async def ended(state: State) -> None:
    """Wait until a control plane that was told to end has done so."""
    try:
        async with asyncio.timeout(_END_TIMEOUT):
            while state.supervisor.alive:
                await asyncio.sleep(_POLL)
    except TimeoutError as error:
        raise DevError(
            f"the control plane {state.name} (process {state.supervisor.pid}) does not end",
            next_step=f"Kill it with `kill -9 {state.supervisor.pid}`; its programs die with it.",
        ) from error
    # Removes whatever a supervisor that was killed could not remove itself.
    instances.instances()


def _ready_instance(name: str, pid: int) -> Instance | None:
    for instance, state in instances.instances():
        if state.name == name and state.supervisor.pid == pid and state.phase == "Ready":
            return instance
    return None


def _command(wish: Wish) -> list[str]:
    options = [f"--name={wish.name}", f"--node={wish.node}", f"--port={wish.port}"]
    if wish.crds:
        options.append("--crds")
    if wish.operator:
        options.append("--operator")
    options += [f"--api-server={flag}" for flag in wish.api_server]
    if wish.keep_logs is not None:
        options.append(f"--keep-logs={wish.keep_logs}")
    return [sys.executable, "-m", "pequod", "dev", "up", *options]
