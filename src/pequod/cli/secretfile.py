"""Credentials out of a Secret manifest, as they would come from a cluster."""

from base64 import b64decode
from pathlib import Path

import yaml

from pequod.cli import terminal
from pequod.sources.credentials import Credentials, read_secret


def read_secret_file(path: Path) -> Credentials:
    """Read a manifest of kind Secret: `data` in base64, `stringData` as it is."""
    try:
        content = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        assert content["kind"] == "Secret"
        data = {key: b64decode(value, validate=True) for key, value in _part(content, "data")}
        data |= {key: value.encode() for key, value in _part(content, "stringData")}
    except (yaml.YAMLError, AssertionError, LookupError, TypeError, AttributeError, ValueError):
        terminal.fail(
            f"{path} is no manifest of a Secret",
            "Write one with `kubectl create secret … --dry-run=client -o yaml`.",
        )
    return read_secret(data, name=str(path))


def _part(content: dict[str, dict[str, str]], name: str) -> list[tuple[str, str]]:
    return list((content.get(name) or {}).items())
