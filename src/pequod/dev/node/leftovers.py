"""What a real node leaves on the machine when its processes are gone, and its removal.

Mounts, devices and processes go away with the node's namespaces. What stays is written down in the
directory of its control plane: its slot, and the kernel settings that were there before.
"""

from pathlib import Path

import msgspec

from pequod.dev.layout import Layout
from pequod.dev.node.cgroups import remove_cgroups
from pequod.dev.node.network import Slot, disconnect

SETTINGS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""Kernel settings of the whole machine that a kubelet or a route to pods changes."""

_SYSCTL = Path("/proc/sys")


class Leftovers(msgspec.Struct, frozen=True):
    """What to undo when the node is gone."""

    slot: int
    settings: dict[str, str]


def _record(layout: Layout) -> Path:
    return layout.node / "leftovers.json"


def write_down(layout: Layout, slot: Slot) -> None:
    """Write down what is there before the node changes it."""
    settings = {name: _SYSCTL.joinpath(name).read_text().strip() for name in SETTINGS}
    _record(layout).write_bytes(msgspec.json.encode(Leftovers(slot.number, settings)))


def remove_leftovers(layout: Layout) -> None:
    """Undo what outlives the processes of a real node; nothing to do for any other."""
    try:
        left = msgspec.json.decode(_record(layout).read_bytes(), type=Leftovers)
    except (FileNotFoundError, NotADirectoryError):
        return
    slot = Slot(left.slot)
    disconnect(slot)
    remove_cgroups(slot.cgroup)
    if not _other_nodes():
        for name, value in left.settings.items():
            _SYSCTL.joinpath(name).write_text(value)


def _other_nodes() -> bool:
    return any(Path("/sys/class/net").glob("pequod*"))
