"""The control groups of a real node's pods, in one hierarchy or in one for each controller."""

import time
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PATIENCE = 10.0
_POLL = 0.02
_CONTROLLERS = "cgroup.controllers"
_SUBTREE = "cgroup.subtree_control"


def make_cgroups(name: str) -> None:
    """Make the group that the kubelet expects to find."""
    if (ROOT / _CONTROLLERS).exists():
        (ROOT / name).mkdir(exist_ok=True)
        _delegate(ROOT)
        _delegate(ROOT / name)
        return
    for hierarchy in ROOT.iterdir():
        if (hierarchy / "cgroup.procs").exists():
            (hierarchy / name).mkdir(exist_ok=True)


def remove_cgroups(name: str) -> None:
    """Remove the group and everything below it, as soon as the kernel has ended what was in it."""
    deadline = time.monotonic() + PATIENCE
    while groups := _groups(name):
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL)


def _groups(name: str) -> list[Path]:
    """The group in every hierarchy and all groups below it, deepest first."""
    roots = [root for root in (ROOT / name, *ROOT.glob(f"*/{name}")) if root.exists()]
    below = [folder for root in roots for folder in root.rglob("*/")]
    return sorted([*roots, *below], key=lambda path: -len(path.parts))


def _delegate(group: Path) -> None:
    """Let the groups below use every controller that this one has and may pass on."""
    for controller in (group / _CONTROLLERS).read_text().split():
        with suppress(OSError):
            (group / _SUBTREE).write_text(f"+{controller}")
