"""Whose directory is whose, and what becomes of those that nobody owns any more."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pequod.dev import instances
from pequod.dev.failure import DevError
from pequod.dev.instances import Instance, ProcessId, State, claim, find, release, reset
from pequod.dev.process import start_time


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEQUOD_STATE_DIR", str(tmp_path))
    return tmp_path / "dev"


def _dead() -> ProcessId:
    """A process that has been, and is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    started = start_time(process.pid)
    assert started is not None
    process.wait()
    return ProcessId(process.pid, started)


def test_what_is_claimed_can_be_found_until_it_is_released(folder: Path) -> None:
    instance, state = claim("mine", "none")
    assert instance.layout.root == folder / "mine"
    assert instance.layout.root.stat().st_mode & 0o777 == 0o700
    assert find("mine")[1] == state
    release(instance)
    with pytest.raises(DevError, match="no control plane named mine is running"):
        find("mine")


def test_a_name_is_claimed_once() -> None:
    claim("mine", "none")
    with pytest.raises(DevError, match="mine is running already"):
        claim("mine", "none")


@pytest.mark.parametrize("name", ["", "../x", "Upper", "a" * 21, "1st", "a_b"])
def test_a_name_that_would_be_a_bad_folder_is_refused(name: str) -> None:
    with pytest.raises(DevError, match="cannot name a control plane"):
        claim(name, "none")


def test_the_directory_of_a_dead_supervisor_is_removed_with_its_components() -> None:
    instance, state = claim("mine", "none")
    component = subprocess.Popen(["sleep", "60"])
    started = start_time(component.pid)
    assert started is not None
    state.supervisor = _dead()
    state.components = {"etcd": ProcessId(component.pid, started)}
    instance.write(state)
    assert instances.instances() == []
    assert not instance.layout.root.exists()
    assert component.wait(timeout=10) != 0


def test_a_directory_that_died_before_it_had_a_state_is_removed(folder: Path) -> None:
    Instance(folder / "young").layout.create()
    assert instances.instances() == []
    assert not (folder / "young").exists()


def test_a_state_that_cannot_be_read_is_no_reason_to_remove_anything(folder: Path) -> None:
    instance, _ = claim("mine", "none")
    (folder / "mine/state.json").write_bytes(b"{")
    with pytest.raises(DevError, match=r"state\.json cannot be read") as failure:
        instances.instances()
    assert str(folder / "mine") in failure.value.next_step
    assert instance.layout.pki.exists()


def test_a_reset_directory_is_empty_and_still_ours() -> None:
    instance, state = claim("mine", "none")
    (instance.layout.data / "old").touch()
    reset(instance, state)
    assert find("mine")[1].supervisor.alive
    assert list(instance.layout.data.iterdir()) == []


def test_too_little_space_is_refused_before_anything_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DevError, match=r"needs 256 MiB and .* has 1 MiB free"):
        claim("mine", "none")
    assert not (folder / "mine").exists()


def test_only_processes_that_live_are_published() -> None:
    instance, state = claim("mine", "none")
    living, dead = state.supervisor.pid, _dead().pid
    instance.publish(state, {"etcd": living, "kwok": dead})
    stored = msgspec.json.decode((instance.layout.root / "state.json").read_bytes(), type=State)
    assert list(stored.components) == ["etcd"]
