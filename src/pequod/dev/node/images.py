"""Container images out of a single static program, without a builder or a registry."""

import hashlib
import io
import platform
import tarfile
from pathlib import Path

import msgspec

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What images call the machines that Linux knows under another name."""


def write_image(
    archive: Path, *, name: str, program: Path, arguments: tuple[str, ...] = ()
) -> None:
    """Write an image that holds one program and runs it, as `docker load` reads it."""
    layer = _tar({program.name: (program.read_bytes(), 0o755)})
    config = msgspec.json.encode(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}", *arguments]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
        }
    )
    manifest = msgspec.json.encode(
        [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    )
    files = {"config.json": config, "layer.tar": layer, "manifest.json": manifest}
    archive.write_bytes(_tar({path: (content, 0o644) for path, content in files.items()}))


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (content, mode) in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
