"""Which jj is run: the first one that is new enough, on PATH or in a folder of the caller's."""

import os
import re
import shutil
import tempfile
from pathlib import Path

from pequod.sources.errors import UnavailableError
from pequod.sources.jj.process import Bounds, Program

MINIMUM = (0, 45)
_VERSION = re.compile(rb"jj (\d+)\.(\d+)\.")
_QUICK = Bounds(seconds=10.0, output_bytes=2**12)


async def find_program(*folders: Path) -> Path:
    """The program: from PATH, then from the given folders; UnavailableError where there is none."""
    unusable: list[str] = []
    for place in (os.environ.get("PATH", os.defpath), *map(str, folders)):
        found = shutil.which("jj", path=place)
        if found is None:
            continue
        version = await _version(Path(found))
        if version is not None and version >= MINIMUM:
            return Path(found)
        unusable.append(found)
    needed = f"{MINIMUM[0]}.{MINIMUM[1]}"
    too_old = f" ({', '.join(unusable)} cannot be used)" if unusable else ""
    raise UnavailableError(
        "jj",
        step="find the program",
        problem=f"there is no jj {needed} or newer{too_old}",
        next_step="run `make tools` in a checkout of Pequod, or put jj on PATH",
    )


async def _version(path: Path) -> tuple[int, int] | None:
    program = Program(
        path=path,
        environment={"HOME": "/nonexistent", "JJ_CONFIG": ""},
        folder=Path(tempfile.gettempdir()),
        bounds=_QUICK,
    )
    try:
        ended = await program.run("--version", reference="jj")
    except UnavailableError:
        return None
    said = _VERSION.match(ended.output)
    return (int(said[1]), int(said[2])) if said else None
