"""Digests that tell whether something has changed, and nothing else.

They are keyed: whoever can read a status must not be able to try out what a Secret might hold. The
key is the operator's; with another key everything is unknown, and applied once more.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from pequod.graph.fields import our_fields, projected

KEY_BYTES = 32
_BYTES = 16

_encoder = msgspec.json.Encoder(order="deterministic")


class Digests:
    """Digests under one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) < KEY_BYTES:
            raise ValueError(f"a key of digests has at least {KEY_BYTES} bytes")
        self._key = key

    def desired(self, body: Mapping[str, Any]) -> str:
        """Of what we ask for."""
        return self._digest(b"desired", body)

    def owned(self, object_: Mapping[str, Any]) -> str:
        """Of our own fields of a live object; empty when nothing of it is ours."""
        metadata = object_.get("metadata")
        trees = our_fields(metadata) if isinstance(metadata, dict) else []
        if not trees:
            return ""
        return self._digest(b"owned", [projected(object_, tree) for tree in trees])

    def _digest(self, purpose: bytes, value: object) -> str:
        made = hmac.digest(self._key, purpose + b"\0" + _encoder.encode(value), "sha256")
        return urlsafe_b64encode(made[:_BYTES]).rstrip(b"=").decode()
