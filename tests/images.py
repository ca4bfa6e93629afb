"""Images with one program in them, made here, as `ctr images import` reads them."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path


def write_program_image(archive: Path, name: str, program: Path) -> None:
    """Write an image that finds its program by name, as images of real programs do."""
    place = f"bin/{program.name}"
    layer = _tar({place: program.read_bytes()})
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": [f"/{place}"], "Env": ["PATH=/bin"]},
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
