"""Plain functions over plain objects, and the part of their metadata that we keep."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from pequod.api.meta import ObjectMeta

MISFITS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON that others wrote can end with."""

Object = dict[str, Any]
"""An object as JSON has it: what we apply is not ours to type."""


class Key(NamedTuple):
    """An object among those of its kind."""

    namespace: str
    """Empty for cluster-scoped objects."""
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The least that one has to know of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Named(msgspec.Struct, frozen=True):
    """Any object, seen by its metadata only."""

    metadata: Metadata


class Described(msgspec.Struct, frozen=True):
    """Any object, seen by all of the metadata that we read: labels and annotations as well."""

    metadata: ObjectMeta


class Secret(msgspec.Struct, frozen=True):
    """A Secret with its content, decoded; only its name is ever shown."""

    metadata: Metadata
    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("metadata", self.metadata)]

    @property
    def content(self) -> Mapping[str, bytes]:
        """What it holds, by key."""
        return self.data or {}


def version_number(resource_version: str) -> int | None:
    """A resource version as a number, or None where an API server has versions of another kind.

    Those of one resource can be compared with each other: Kubernetes says so since 1.35.
    """
    return int(resource_version) if resource_version.isdecimal() else None


def micro_time() -> str:
    """Now, as Leases and Events have it; for people, never compared with another machine's."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """The JSON merge patch (RFC 7396) that turns one object into the other; empty when equal."""
    patch: Object = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := merge_patch(old, value):
                patch[name] = inner
        elif name not in before or not _equal(old, value):
            patch[name] = value
    return patch


def _equal(one: object, other: object) -> bool:
    """Equality as JSON has it: true is not 1, wherever it stands."""
    return one == other and (
        type(one) is type(other) is str or msgspec.json.encode(one) == msgspec.json.encode(other)
    )
