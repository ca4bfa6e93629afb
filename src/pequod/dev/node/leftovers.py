"""What a real node leaves on the machine when its processes are gone, and its removal.

Mounts, devices and processes go away with the node's namespaces. The rest carries the mark of its
owner, which is written down in the directory of its control plane before anything is made.
"""

import secrets
from pathlib import Path

from pequod.dev.layout import Layout
from pequod.dev.node import settings
from pequod.dev.node.cgroups import remove_cgroups
from pequod.dev.node.network import disconnect, mark


def new_owner(layout: Layout) -> str:
    """A mark for everything that is about to be made, written down first."""
    owner = secrets.token_hex(4)
    _record(layout).write_text(owner)
    settings.remember()
    return owner


def remove_leftovers(layout: Layout) -> None:
    """Undo what outlives the processes of a real node; nothing to do for any other."""
    record = _record(layout)
    if not record.exists():
        return
    owner = record.read_text()
    disconnect(owner)
    remove_cgroups(mark(owner))
    settings.restore()
    record.unlink()


def _record(layout: Layout) -> Path:
    return layout.node / "owner"
