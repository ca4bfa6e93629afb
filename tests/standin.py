"""An image that stands in for a database server, made here: see `e2e/standin/main.go`."""

import os
import subprocess
from pathlib import Path

from images import write_program_image


def write_standin(archive: Path, name: str, folder: Path) -> None:
    """Build the program, called as the probe of the module calls it, and write its image."""
    built = folder / "pg_isready"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags=-s -w", f"-o={built}", "."],
        check=True,
        cwd=Path(__file__).parent / "e2e/standin",
        env=os.environ | {"CGO_ENABLED": "0"},
    )
    write_program_image(archive, name, built)
