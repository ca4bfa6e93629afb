"""Everything that a graph intended or applied: the only licence to delete, and never too small.

It is widened and stored before the first apply, and narrowed after the last prune; a crash between
any two writes finds everything in it that may exist.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pequod.api.graph import DeletionPolicy, InventoryEntry
from pequod.graph.model import Ref


@dataclass(frozen=True, slots=True)
class Intent:
    """An object that a node asks for."""

    ref: Ref
    version: str
    node: str
    level: int
    deletion_policy: DeletionPolicy | None = None


def is_left(own: DeletionPolicy | None, graph: DeletionPolicy) -> bool:
    """Whether an object outlives its node, by what the node and the graph say."""
    return (own or graph) == "Orphan"


def unseen(
    entries: Iterable[InventoryEntry], nodes: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """The entries that belong to nodes of which only the objects' names are known, by their ids.

    Their kinds are not served, or they cannot be used as they are: they are wanted all the same.
    """
    names = {_name_of(object_) for object_ in nodes.values()}
    return frozenset(
        entry.id
        for entry in entries
        if entry.node in nodes or Ref.of(entry.id)._replace(namespace="") in names
    )


def _name_of(object_: Mapping[str, Any]) -> Ref:
    """What is known of an object before its kind is."""
    group = str(object_["apiVersion"]).rpartition("/")[0]
    return Ref(group, str(object_["kind"]), "", str(object_["metadata"]["name"]))


class Inventory:
    """The entries of one graph by their ids, in the order in which they were intended."""

    def __init__(self, entries: Iterable[InventoryEntry] = ()) -> None:
        self._entries = {entry.id: entry for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[InventoryEntry]:
        return iter(tuple(self._entries.values()))

    def __contains__(self, id_: str) -> bool:
        return id_ in self._entries

    def entries(self) -> tuple[InventoryEntry, ...]:
        """As the status has them."""
        return tuple(self._entries.values())

    def uid(self, id_: str) -> str:
        """The UID of an object; empty when it was only intended, or is not ours at all."""
        entry = self._entries.get(id_)
        return (entry.uid or "") if entry is not None else ""

    def follow(self, wanted: Iterable[Intent]) -> bool:
        """Take over what is asked of objects that are known; whether that changed anything.

        A node may come to say nothing new but what becomes of its object in the end.
        """
        return self.widen(intent for intent in wanted if intent.ref.id in self._entries)

    def widen(self, wanted: Iterable[Intent]) -> bool:
        """Take intentions in; whether that changed anything."""
        changed = False
        for intent in wanted:
            known = self._entries.get(intent.ref.id)
            entry = InventoryEntry(
                id=intent.ref.id,
                version=intent.version,
                node=intent.node,
                uid=known.uid if known is not None else None,
                level=intent.level or None,
                deletion_policy=intent.deletion_policy,
            )
            if entry != known:
                self._entries[entry.id] = entry
                changed = True
        return changed

    def learn(self, id_: str, uid: str) -> None:
        """An object exists, and it is ours."""
        entry = self._entries.get(id_)
        if entry is not None and entry.uid != uid:
            self._entries[id_] = msgspec.structs.replace(entry, uid=uid)

    def forget_uid(self, id_: str) -> None:
        """The object that we knew is gone; another one may take its place."""
        entry = self._entries.get(id_)
        if entry is not None and entry.uid is not None:
            self._entries[id_] = msgspec.structs.replace(entry, uid=None)

    def drop(self, id_: str) -> None:
        """An object is gone, or no longer ours."""
        self._entries.pop(id_, None)

    def stale(self, wanted: Iterable[str]) -> list[InventoryEntry]:
        """The entries that no node asks for any more."""
        ids = frozenset(wanted)
        return [entry for entry in self._entries.values() if entry.id not in ids]
