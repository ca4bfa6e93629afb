"""Kernel settings of the whole machine that real nodes change, and their return to what they were.

The originals are kept once for the machine, where they are lost together with the settings when it
is restarted: a second node finds the first one's values, not the originals.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

FORWARDING = "net/ipv4/ip_forward"
CHANGED = (
    FORWARDING,
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""What a kubelet sets when it starts, and what a way out for pods needs."""

_KERNEL = Path("/proc/sys")
_ORIGINALS = Path("/run/pequod-settings.json")


def remember() -> None:
    """Write the originals down, unless another node has done so."""
    if not _ORIGINALS.exists():
        _ORIGINALS.write_bytes(msgspec.json.encode(current()))


def forward_packets() -> None:
    """Let this machine pass on what pods send to others."""
    (_KERNEL / FORWARDING).write_text("1")


def restore() -> None:
    """Put the originals back, once no real node is left."""
    if any(Path("/sys/class/net").glob("pequod*")):
        return
    with suppress(FileNotFoundError):
        originals = msgspec.json.decode(_ORIGINALS.read_bytes(), type=dict[str, str])
        for name, value in originals.items():
            _set(_KERNEL / name, value)
        _ORIGINALS.unlink()


def current() -> dict[str, str]:
    """The settings that this kernel has, as they are now."""
    found = {name: _KERNEL / name for name in CHANGED}
    return {name: path.read_text().strip() for name, path in found.items() if path.exists()}


def _set(path: Path, value: str) -> None:
    # What cannot be written now could not be changed before.
    with suppress(OSError):
        if path.read_text().strip() != value:
            path.write_text(value)
