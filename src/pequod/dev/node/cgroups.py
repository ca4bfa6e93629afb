"""The control groups of a real node's pods, in one hierarchy or in one for each controller."""

from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
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
    """Remove the group and everything below it."""
    for root in (ROOT / name, *ROOT.glob(f"*/{name}")):
        for folder in sorted(root.rglob("*/"), key=lambda path: -len(path.parts)):
            _remove(folder)
        _remove(root)


def _delegate(group: Path) -> None:
    """Let the groups below use every controller that this one has and may pass on."""
    for controller in (group / _CONTROLLERS).read_text().split():
        with suppress(OSError):
            (group / _SUBTREE).write_text(f"+{controller}")


def _remove(folder: Path) -> None:
    # Gone already, or held by a process that the kernel is still ending.
    with suppress(OSError):
        folder.rmdir()
