"""Where things are kept on this machine, and where the files that we ship are found."""

import os
from pathlib import Path

from pequod.dev.failure import DevError

_PACKAGE = Path(__file__).parents[1]
_WORK_TREE = Path(__file__).parents[3]


def cache_dir() -> Path:
    """Built programs: worth keeping, safe to delete. `PEQUOD_CACHE_DIR` moves it."""
    return _place("PEQUOD_CACHE_DIR", "XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Control planes that run, or that died. `PEQUOD_STATE_DIR` moves it."""
    return _place("PEQUOD_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def shipped(relative: str) -> Path:
    """A file or folder that comes with Pequod: in the package, or in the work tree around it."""
    for root in (_PACKAGE / "shipped", _WORK_TREE):
        if (root / relative).exists():
            return root / relative
    raise DevError(
        f"{relative} does not come with this installation of Pequod",
        next_step="Install Pequod again, or run it from a checkout of its repository.",
    )


def _place(own_variable: str, xdg_variable: str, below_home: str) -> Path:
    if own := os.environ.get(own_variable):
        return Path(own).absolute()
    base = os.environ.get(xdg_variable)
    return (Path(base) if base else Path.home() / below_home) / "pequod"
