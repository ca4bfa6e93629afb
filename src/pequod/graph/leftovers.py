"""What would become of objects that no node asks for any more. Reads, and deletes nothing.

`removal` takes them away; what it would let go of, hold back or not find at all is told here.
"""

import asyncio
from collections.abc import Sequence

from pequod.api import reasons
from pequod.api.graph import InventoryEntry
from pequod.graph.child import GRACE, PRUNE
from pequod.graph.inventory import is_left
from pequod.graph.model import Ref, graph_of
from pequod.graph.plan import Change, Subject
from pequod.graph.prune import braked
from pequod.graph.record import Problem
from pequod.kube.client import Client
from pequod.kube.discovery import Discovery
from pequod.kube.errors import KubeError, NotFoundError, UnknownKindError
from pequod.kube.objects import Object

_UNWANTED = "no node asks for it any more"


class Leftovers:
    """Looks at objects in one identity's name."""

    def __init__(self, client: Client, discovery: Discovery, slots: asyncio.Semaphore) -> None:
        """`slots` are how many requests a plan makes at a time."""
        self._client = client
        self._discovery = discovery
        self._slots = slots

    async def found(
        self, subject: Subject, stale: Sequence[InventoryEntry]
    ) -> tuple[list[Change], list[Ref]]:
        """What would be deleted, deepest first, and what would be let go of."""
        ordered = sorted(stale, key=lambda one: one.level or 0, reverse=True)
        doomed = [entry for entry in ordered if _would_go(subject, entry)]
        held = _brake(subject, doomed)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(subject, entry, held)) for entry in doomed]
        results = [task.result() for task in tasks]
        left = [Ref.of(entry.id) for entry in ordered if entry not in doomed]
        return (
            [one for one in results if isinstance(one, Change)],
            [*left, *(one for one in results if isinstance(one, Ref))],
        )

    async def _one(
        self, subject: Subject, entry: InventoryEntry, held: Problem | None
    ) -> Change | Ref | None:
        """The deletion of an object, or the object if it lives on; None when there is none."""
        ref = Ref.of(entry.id)
        try:
            async with self._slots:
                live = await self._live(ref, entry.version)
        except KubeError as error:
            return _deletion(ref, entry, held, f"{_UNWANTED}; it could not be looked at: {error}")
        if live is None or not _is_meant(subject, entry, live):
            return None
        annotations = live["metadata"].get("annotations") or {}
        if annotations.get(PRUNE) == "disabled":
            return ref
        grace = annotations.get(GRACE)
        note = f"{_UNWANTED}; it has a grace period of {grace}" if grace else _UNWANTED
        return _deletion(ref, entry, held, note)

    async def _live(self, ref: Ref, version: str) -> Object | None:
        try:
            kind = await self._discovery.find_any(ref.group, version, ref.kind)
            return await self._client.get(kind, ref.name, namespace=ref.namespace or None)
        except (NotFoundError, UnknownKindError):
            return None


def _would_go(subject: Subject, entry: InventoryEntry) -> bool:
    """Whether an object is to be deleted, rather than left behind or handed over."""
    left = is_left(entry.deletion_policy, subject.deletion_policy)
    return not left and not subject.heir(Ref.of(entry.id))


def _brake(subject: Subject, doomed: Sequence[InventoryEntry]) -> Problem | None:
    """Why nothing is deleted before somebody agrees."""
    before = sum(1 for entry in subject.inventory if entry.uid)
    problem = braked(doomed, before, emptied=subject.emptied)
    if not problem or subject.agreed:
        return None
    return Problem(reasons.PRUNE_BLOCKED, f"this change {problem}; {subject.way_out}")


def _is_meant(subject: Subject, entry: InventoryEntry, live: Object) -> bool:
    """Whether it is still the object of the inventory, and not another one's of its name.

    By its UID; one that was intended, and perhaps made, is known by its label.
    """
    label = graph_of(live)
    if label != subject.uid and (label or not entry.uid):
        return False
    return not entry.uid or entry.uid == live["metadata"].get("uid")


def _deletion(ref: Ref, entry: InventoryEntry, held: Problem | None, note: str) -> Change:
    group = f"{ref.group}/" if ref.group else ""
    return Change(
        action="Delete",
        ref=ref,
        api_version=f"{group}{entry.version}",
        note=note,
        refused=held,
    )
