"""What else wakes an object: events of other kinds, mapped to keys by owner, label or index."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

from pequod.kube.cache import Change, Projection, T, Unreadable
from pequod.kube.client import ALL, Selection
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key

Lookup = Callable[[str, str], Iterable[Key]]
"""The objects of the controller's own kind for which an index yields a word."""

Mapper = Callable[[Any, Lookup], Iterable[Key]]
"""From an object of another kind to the keys that it concerns."""


@dataclass(frozen=True, slots=True)
class Trigger(Generic[T]):
    """A kind whose objects lead to objects of ours."""

    kind: Kind
    projection: Projection[T]
    mapper: Mapper
    selection: Selection = ALL

    def keys(self, change: Change[T], lookup: Lookup) -> set[Key]:
        """Whom a change concerns: those whom the object led to, and those whom it leads to."""
        return {
            key
            for value in (change.before, change.after)
            if value is not None and not isinstance(value, Unreadable)
            for key in self.mapper(value, lookup)
        }


def by_owner(kind: Kind) -> Mapper:
    """To the owners of a kind; the projection keeps `metadata.owner_references`."""

    def keys(value: Any, _lookup: Lookup) -> list[Key]:  # noqa: ANN401 -- any projection
        metadata = value.metadata
        namespace = (metadata.namespace or "") if kind.namespaced else ""
        return [
            Key(namespace, owner.name)
            for owner in metadata.owner_references
            if owner.kind == kind.kind and owner.api_version.split("/")[0] == kind.group
        ]

    return keys


def by_label(label: str) -> Mapper:
    """To the object in the same namespace that a label names; `metadata.labels` is kept."""

    def keys(value: Any, _lookup: Lookup) -> list[Key]:  # noqa: ANN401 -- any projection
        name = value.metadata.labels.get(label)
        return [Key(value.metadata.namespace or "", name)] if name else []

    return keys


def by_index(index: str) -> Mapper:
    """To the objects for which an index of the controller yields the key of the other one."""

    def keys(value: Any, lookup: Lookup) -> Iterable[Key]:  # noqa: ANN401 -- any projection
        metadata = value.metadata
        return lookup(index, str(Key(metadata.namespace or "", metadata.name)))

    return keys
