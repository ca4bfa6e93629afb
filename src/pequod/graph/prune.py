"""What is removed, in which order, and when a change would remove too much."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pequod.api.graph import InventoryEntry
from pequod.graph.model import Plan, Ref

PRECIOUS = frozenset(
    {
        ("", "Namespace"),
        ("", "PersistentVolumeClaim"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)
"""Kinds whose deletion takes more with it than themselves."""

WORKLOADS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
    }
)
"""Kinds that are gone only when their pods are."""


def braked(stale: Sequence[InventoryEntry], before: int, *, emptied: bool) -> str:
    """Why a prune needs somebody's agreement; empty when it does not.

    `stale` are the entries whose objects would be deleted, `before` is how many objects there were
    before the change: what a change adds does not make up for what it takes away.

    A single object that is no precious one never does: renaming it would be a nuisance. A graph
    that may be empty, and is, has that agreement for everything but the precious.
    """
    refs = [Ref.of(entry.id) for entry in stale if entry.uid]
    # Whether one without a UID was made is not known, which is reason enough to ask.
    precious = [ref for entry in stale if ((ref := Ref.of(entry.id)).group, ref.kind) in PRECIOUS]
    if precious:
        return f"would delete {listed(precious)}, and whatever is in it"
    if len(refs) > 1 and 2 * len(refs) > before and not emptied:
        return f"would delete {len(refs)} of {before} objects: {listed(refs)}"
    return ""


def listed(refs: Sequence[Ref], most: int = 5) -> str:
    """Objects for a person; not all of them when there are many."""
    shown = ", ".join(str(ref) for ref in refs[:most])
    return f"{shown} and {len(refs) - most} more" if len(refs) > most else shown


class Order:
    """Reverse dependency order: an object goes when everything that needs it is gone."""

    def __init__(self, entries: Collection[InventoryEntry], plan: Plan | None) -> None:
        self._levels = {entry.id: entry.level or 0 for entry in entries}
        self._needed_by = _needed_by(entries, plan) if plan is not None else {}
        self._forgotten = self._levels.keys() - self._needed_by.keys()
        """What no node asks for any more: it may have needed what others still ask for."""

    def next(self, remaining: AbstractSet[str]) -> list[str]:
        """Those of the remaining objects that may go now."""
        forgotten = remaining & self._forgotten or remaining
        deepest = max((self._levels[id_] for id_ in forgotten), default=0)
        return [id_ for id_ in remaining if self._may_go(id_, remaining, deepest)]

    def _may_go(self, id_: str, remaining: AbstractSet[str], deepest: int) -> bool:
        needed_by = self._needed_by.get(id_)
        if needed_by is None:
            # Nobody knows any more who depended on it: everything deeper might have.
            return self._levels[id_] == deepest
        return remaining.isdisjoint(needed_by) and remaining.isdisjoint(self._forgotten)


def _needed_by(entries: Collection[InventoryEntry], plan: Plan) -> Mapping[str, AbstractSet[str]]:
    by_node: dict[str, set[str]] = {}
    for entry in entries:
        if entry.node is not None and entry.node in plan.dependents:
            # A node that has become another object may still have the one that it was.
            by_node.setdefault(entry.node, set()).add(entry.id)
    return {
        id_: frozenset().union(*(by_node.get(other, ()) for other in plan.dependents[node]))
        for node, ids in by_node.items()
        for id_ in ids
    }
