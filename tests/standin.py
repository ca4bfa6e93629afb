"""An image that stands in for a database server, made here: see `e2e/standin/main.go`."""

import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile
from pathlib import Path

PROGRAM = "bin/pg_isready"
"""Where the one program of the image is: found by its name, as the probe of the module does."""


def write_standin(archive: Path, name: str, folder: Path) -> None:
    """Build the program and write an image of it, as `ctr images import` reads it."""
    built = folder / "pg_isready"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags=-s -w", f"-o={built}", "."],
        check=True,
        cwd=Path(__file__).parent / "e2e/standin",
        env=os.environ | {"CGO_ENABLED": "0"},
    )
    layer = _tar({PROGRAM: built.read_bytes()})
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": [f"/{PROGRAM}"], "Env": ["PATH=/bin"]},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
        },
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {
        "config.json": json.dumps(config).encode(),
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    archive.write_bytes(_tar(files))


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
