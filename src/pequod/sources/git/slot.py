"""The folder on disk that belongs to this process, and what is in it."""

import fcntl
import shutil
from itertools import count
from pathlib import Path
from typing import IO


class Slot:
    """A folder that no other process uses; what an earlier one left behind in it is gone."""

    def __init__(self, root: Path) -> None:
        self.folder, self._lock = _first_free(root)
        self.home = self._emptied("home")
        self.private = self._emptied("private")
        self.mirrors = self.folder / "mirrors"
        self.mirrors.mkdir(exist_ok=True)
        for leftover in (*self.mirrors.glob("*.new"), *self.mirrors.glob("*.gone")):
            shutil.rmtree(leftover, ignore_errors=True)

    def close(self) -> None:
        """Let another process have it."""
        self._lock.close()

    def _emptied(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder


def _first_free(root: Path) -> tuple[Path, IO[str]]:
    for number in count():
        folder = root / str(number)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return folder, lock
    raise AssertionError
