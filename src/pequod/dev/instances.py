"""Which control planes exist on this machine: one directory each, and what a dead one left.

A directory belongs to the process that its state file names, by pid and start time. Whoever starts
or lists removes the directories of processes that are gone, with whatever else they left behind.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from pequod.dev.components import NodeKind
from pequod.dev.failure import DevError
from pequod.dev.layout import Layout
from pequod.dev.node.leftovers import remove_leftovers
from pequod.dev.places import state_dir
from pequod.dev.process import kill_if_same, start_time, wait_until_gone

SPACE_FOR_A_RUN = 256 * 1024**2
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


class ProcessId(msgspec.Struct, frozen=True):
    """One process, for good."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether that process still runs."""
        return start_time(self.pid) == self.started


class State(msgspec.Struct, kw_only=True):
    """What is known of a control plane from outside."""

    name: str
    supervisor: ProcessId
    node: NodeKind
    phase: Literal["Starting", "Ready"] = "Starting"
    server: str = ""
    registry: str = ""
    components: dict[str, ProcessId] = {}


class Instance:
    """The directory of one control plane."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)

    @property
    def _state_file(self) -> Path:
        return self.layout.root / "state.json"

    def read(self) -> State | None:
        """Its state; None when it died before it had one."""
        try:
            return msgspec.json.decode(self._state_file.read_bytes(), type=State)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise DevError(
                f"{self._state_file} cannot be read: {error}",
                next_step=f"If nothing of it runs any more, delete {self.layout.root}.",
            ) from error

    def write(self, state: State) -> None:
        """Replace its state as a whole."""
        draft = self._state_file.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(state))
        draft.rename(self._state_file)

    def publish(self, state: State, running: dict[str, int]) -> None:
        """Write down which components run, so that somebody else can end them if we cannot."""
        started = {name: (pid, start_time(pid)) for name, pid in running.items()}
        state.components = {
            name: ProcessId(pid, when) for name, (pid, when) in started.items() if when is not None
        }
        self.write(state)

    def remove(self) -> None:
        """Remove everything of a control plane whose supervisor is gone, or is about to go."""
        state = self.read()
        components = state.components.values() if state is not None else ()
        for process in components:
            kill_if_same(process.pid, process.started)
        wait_until_gone(process.pid for process in components)
        remove_leftovers(self.layout)
        shutil.rmtree(self.layout.root)


def instances() -> list[tuple[Instance, State]]:
    """The control planes that run, or are being started, by name."""
    with _lock():
        _remove_dead()
        found = ((instance, instance.read()) for instance in _all())
        return [(instance, state) for instance, state in found if state is not None]


def find(name: str) -> tuple[Instance, State]:
    """The control plane of a name."""
    for instance, state in instances():
        if state.name == name:
            return instance, state
    raise DevError(
        f"no control plane named {name} is running",
        next_step="Start it with `pequod dev up`; `pequod dev status` lists those that run.",
    )


def claim(name: str, node: NodeKind) -> tuple[Instance, State]:
    """A new directory, ours until we end; what others left is removed first."""
    if not _NAME.fullmatch(name):
        raise DevError(
            f"{name!r} cannot name a control plane",
            next_step="Use up to 20 lower-case letters, digits and dashes, a letter first.",
        )
    with _lock():
        _remove_dead()
        instance = Instance(_folder() / name)
        if instance.layout.root.exists():
            raise DevError(
                f"a control plane named {name} is running already",
                next_step=f"End it with `pequod dev down --name {name}`, or choose another --name.",
            )
        _require_space()
        instance.layout.create()
        state = State(name=name, node=node, supervisor=_ourselves())
        instance.write(state)
        return instance, state


def release(instance: Instance) -> None:
    """Remove our own directory; nobody sees it half removed."""
    with _lock():
        instance.remove()


def reset(instance: Instance, state: State) -> None:
    """Begin anew in our own directory; nobody sees it without its state."""
    with _lock():
        instance.remove()
        instance.layout.create()
        state.components = {}
        instance.write(state)


def _ourselves() -> ProcessId:
    started = start_time(os.getpid())
    assert started is not None, "the running process has a start time"
    return ProcessId(os.getpid(), started)


def _folder() -> Path:
    return state_dir() / "dev"


def _all() -> Iterator[Instance]:
    for path in sorted(_folder().iterdir()):
        if path.is_dir():
            yield Instance(path)


def _remove_dead() -> None:
    for instance in [*_all()]:
        state = instance.read()
        if state is None or not state.supervisor.alive:
            instance.remove()


def _require_space() -> None:
    free = shutil.disk_usage(_folder()).free
    if free < SPACE_FOR_A_RUN:
        raise DevError(
            f"a control plane needs {SPACE_FOR_A_RUN // 1024**2} MiB and {_folder()} has "
            f"{free // 1024**2} MiB free",
            next_step="Free some space, or set PEQUOD_STATE_DIR to a folder on a larger disk.",
        )


@contextmanager
def _lock() -> Iterator[None]:
    """One process at a time claims, lists or removes."""
    try:
        _folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (_folder() / ".lock").open("w")
    except OSError as error:
        raise DevError(
            f"{_folder()} cannot be written: {error.strerror}",
            next_step="Set PEQUOD_STATE_DIR to a folder that you may write to.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
