"""Takes objects away: those that a graph no longer asks for, or all of them.

Every delete carries the UID of the inventory, in reverse dependency order. What is protected, to be
orphaned, or claimed by another graph is let go instead. What others hold with finalizers of theirs
is reported, and nobody else waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from pequod.api.graph import InventoryEntry
from pequod.graph.applying import is_gone
from pequod.graph.child import Child
from pequod.graph.children import Children
from pequod.graph.model import GRAPH_LABEL, RELEASED, Plan, Ref
from pequod.graph.prune import WORKLOADS, Order
from pequod.graph.run import Run
from pequod.kube.client import Client, Exactly
from pequod.kube.errors import ConflictError, FencedError, KubeError, NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Named, Object

AT_ONCE = 16
POLL = 10.0
"""Seconds after which something is looked at again that is on its way out."""
SOON = 1.0
"""Seconds after which it is looked again what another graph means to do."""
_OWN_FINALIZERS = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers of the garbage collector: part of the deletion that we asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """An object that is to be taken away."""

    entry: InventoryEntry
    ref: Ref
    kind: Kind | None
    """None when the API server no longer serves its kind: then it is gone."""
    child: Child | None
    orphan: bool
    watched: bool = False
    """Whether its absence is known from a watch."""
    heir: str = ""
    """UID of another graph that asks for the object, and means to make it."""
    suitor: str = ""
    """Another graph that asks for it, and of which it is not known yet whether it means to."""
    unlabel: bool = True
    """Whether it loses the graph's label when it is let go: that of a graph that lives on."""


@dataclass(slots=True)
class Removed:
    """What became of the objects."""

    deleted: list[Ref] = field(default_factory=list)
    orphaned: list[Ref] = field(default_factory=list)
    handed_over: list[Ref] = field(default_factory=list)
    going: dict[Ref, str] = field(default_factory=dict)
    """Objects that are on their way out, and what holds them."""
    failed: dict[Ref, KubeError] = field(default_factory=dict)
    wake: float | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be taken away."""
        return not self.going and not self.failed


class Removal:
    """One pass of taking objects of one graph away."""

    def __init__(
        self,
        run: Run,
        doomed: Collection[Doomed],
        plan: Plan | None,
        *,
        client: Client,
        children: Children,
        confirm: Callable[[], Awaitable[None]],
    ) -> None:
        self._run = run
        self._doomed = {one.entry.id: one for one in doomed}
        self._order = Order([one.entry for one in doomed], plan)
        self._has_dependencies = _with_dependencies(plan)
        self._client = client
        self._children = children
        self._confirm = confirm
        self._confirming = asyncio.Lock()
        self._confirmed = False
        self._remaining = set(self._doomed)
        self._tried: set[str] = set()
        self.removed = Removed()

    async def run(self) -> Removed:
        """Take away what can be taken away now."""
        tasks: dict[asyncio.Task[bool], str] = {}
        try:
            while True:
                for id_ in self._order.next(self._remaining):
                    if id_ not in self._tried and len(tasks) < AT_ONCE:
                        self._tried.add(id_)
                        task = asyncio.create_task(self._one(self._doomed[id_]), name=f"rm {id_}")
                        tasks[task] = id_
                if not tasks:
                    return self.removed
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    id_ = tasks.pop(task)
                    if task.result():
                        self._remaining.discard(id_)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, doomed: Doomed) -> bool:
        """Take one object away; whether nobody has to wait for it any more."""
        try:
            return await self._taken_away(doomed)
        except FencedError:
            raise
        except KubeError as error:
            self.removed.failed[doomed.ref] = error
            return False

    async def _taken_away(self, doomed: Doomed) -> bool:
        if doomed.kind is None:
            return self._gone(doomed)
        if doomed.suitor:
            return self._courted(doomed)
        if doomed.orphan and not doomed.heir:
            return await self._orphaned(doomed, doomed.kind)
        child = doomed.child
        if child is None:
            if doomed.watched and doomed.entry.id in self._run.going:
                # It was on its way out, which cannot be taken back, and the watch tells no more.
                return self._gone(doomed)
            child = await self._looked_at(doomed, doomed.kind)
            if child is None:
                return self._gone(doomed, deleted=bool(doomed.entry.uid))
        return await self._ended(doomed, doomed.kind, child)

    async def _ended(self, doomed: Doomed, kind: Kind, child: Child) -> bool:
        """Take a live object away that is ours, in whichever way it is to go."""
        if child.deleting:
            over = await self._is_over(doomed, kind, child)
            return self._gone(doomed) if over else self._going(doomed, child)
        if child.protected and not doomed.heir:
            return await self._let_go(doomed, kind, child)
        if self._in_grace(doomed, child):
            return False
        await self._confirm_once()
        if doomed.heir:
            await self._hand_over(doomed, kind, child.metadata.uid)
            return True
        return await self._delete(doomed, kind, child)

    async def _looked_at(self, doomed: Doomed, kind: Kind) -> Child | None:
        """An object that no watch shows as ours; None when it is gone, or somebody else's by now.

        One that only lost its label is still the one that the inventory means, by its UID; one
        that was intended and perhaps made is known by its label.
        """
        ref = doomed.ref
        try:
            answer = await self._client.get_bytes(kind, ref.name, namespace=ref.namespace or None)
        except NotFoundError:
            return None
        child = self._children.read(answer)
        label, uid = child.metadata.graph, doomed.entry.uid
        if label != self._run.graph and (label or not uid):
            return None
        if uid and child.metadata.uid != uid:
            return None
        self._run.inventory.learn(doomed.entry.id, child.metadata.uid)
        return child

    async def _orphaned(self, doomed: Doomed, kind: Kind) -> bool:
        """Leave an object to whoever wants it; what no watch shows is looked for."""
        child = doomed.child
        if child is None and doomed.unlabel and not doomed.watched:
            child = await self._looked_at(doomed, kind)
        return await self._let_go(doomed, kind, child)

    async def _let_go(self, doomed: Doomed, kind: Kind, child: Child | None) -> bool:
        """Leave an object behind, without the label of a graph that lives on without it."""
        if doomed.unlabel and child is not None and not child.deleting:
            await self._confirm_once()
            released = {RELEASED: self._run.graph}
            await self._relabel(doomed, kind, child.metadata.uid, None, annotations=released)
        self.removed.orphaned.append(doomed.ref)
        self._run.inventory.drop(doomed.entry.id)
        return True

    def _courted(self, doomed: Doomed) -> bool:
        """Wait until it is known whether another graph means to have an object."""
        self.removed.going[doomed.ref] = f"asked for by ResourceGraph {doomed.suitor} as well"
        self._wake_at(asyncio.get_running_loop().time() + SOON)
        return False

    async def _delete(self, doomed: Doomed, kind: Kind, child: Child) -> bool:
        ref, uid = doomed.ref, child.metadata.uid
        foreground = self._outlives_its_pods(doomed, child)
        with self._children.writing(kind, ref):
            try:
                answer = await self._client.delete(
                    kind,
                    ref.name,
                    Exactly(uid),
                    namespace=ref.namespace or None,
                    propagation="Foreground" if foreground else "Background",
                )
            except (NotFoundError, ConflictError) as error:
                if isinstance(error, ConflictError) and await self._is_there(kind, ref, uid):
                    raise
                # Gone, or another object has its name by now: none of ours is left.
                self._children.observe_removal(kind, ref, uid)
                return self._gone(doomed)
            if is_gone(answer):
                self._children.observe_removal(kind, ref, uid)
                return self._gone(doomed)
            return self._going(doomed, self._children.observe(kind, answer))

    def _outlives_its_pods(self, doomed: Doomed, child: Child) -> bool:
        """Whether an object is to be there until its pods are gone.

        What they depend on must outlive them, and it is deleted when this object is gone.
        """
        needs_others = bool(doomed.entry.level) or doomed.entry.node in self._has_dependencies
        is_workload = (doomed.ref.group, doomed.ref.kind) in WORKLOADS
        return is_workload and needs_others and child.has_pods

    async def _is_over(self, doomed: Doomed, kind: Kind, child: Child) -> bool:
        """Whether what is on its way out is gone: asked now and then, since an event may be lost.

        There is no later event about an object that is gone.
        """
        now, ref = asyncio.get_running_loop().time(), doomed.ref
        if now < self._run.look_at.setdefault(doomed.entry.id, now + POLL):
            return False
        self._run.look_at[doomed.entry.id] = now + POLL
        if await self._is_there(kind, ref, child.metadata.uid):
            return False
        self._children.observe_removal(kind, ref, child.metadata.uid)
        return True

    async def _is_there(self, kind: Kind, ref: Ref, uid: str) -> bool:
        """Whether it is still that object that has the name."""
        try:
            found = await self._client.get_metadata(
                kind, ref.name, Named, namespace=ref.namespace or None
            )
        except NotFoundError:
            return False
        return found.metadata.uid == uid

    async def _hand_over(self, doomed: Doomed, kind: Kind, uid: str) -> None:
        """Let another graph have an object: from now on it carries that one's label."""
        if not await self._relabel(doomed, kind, uid, doomed.heir):
            self._gone(doomed)
            return
        self._run.inventory.drop(doomed.entry.id)
        self.removed.handed_over.append(doomed.ref)

    async def _relabel(
        self, doomed: Doomed, kind: Kind, uid: str, graph: str | None, **more: Object
    ) -> bool:
        """Say whose an object is from now on; whether it was still there."""
        ref = doomed.ref
        patch = {"metadata": {"uid": uid, "labels": {GRAPH_LABEL: graph}, **more}}
        try:
            await self._client.patch(kind, ref.name, patch, namespace=ref.namespace or None)
        except (NotFoundError, ConflictError) as error:
            if isinstance(error, ConflictError) and await self._is_there(kind, ref, uid):
                raise
            return False
        return True

    def _gone(self, doomed: Doomed, *, deleted: bool = True) -> bool:
        self._run.inventory.drop(doomed.entry.id)
        self._run.stale_since.pop(doomed.entry.id, None)
        self._run.look_at.pop(doomed.entry.id, None)
        self._run.going.discard(doomed.entry.id)
        if deleted:
            self.removed.deleted.append(doomed.ref)
        return True

    def _going(self, doomed: Doomed, child: Child) -> bool:
        """An object on its way out; others wait for it only while it is our deletion that runs."""
        foreign = [name for name in child.finalizers if name not in _OWN_FINALIZERS]
        if foreign:
            held = f"held by the finalizer {', '.join(foreign)}: its owner has to take it off"
        else:
            held = "on its way out"
        self.removed.going[doomed.ref] = held
        self._run.going.add(doomed.entry.id)
        self._wake_at(asyncio.get_running_loop().time() + POLL)
        return bool(foreign)

    def _in_grace(self, doomed: Doomed, child: Child) -> bool:
        grace = child.grace
        if not grace:
            return False
        now = asyncio.get_running_loop().time()
        until = self._run.stale_since.setdefault(doomed.entry.id, now) + grace
        if now >= until:
            return False
        self.removed.going[doomed.ref] = f"in its grace period of {grace:.0f} s"
        self._wake_at(until)
        return True

    async def _confirm_once(self) -> None:
        """One look at the graph itself, not at what a cache says of it, before the first delete."""
        async with self._confirming:
            if not self._confirmed:
                await self._confirm()
                self._confirmed = True

    def _wake_at(self, at: float) -> None:
        self.removed.wake = min(at, self.removed.wake or at)


def _with_dependencies(plan: Plan | None) -> frozenset[str]:
    if plan is None:
        return frozenset()
    return frozenset(id_ for id_, others in plan.edges.items() if others)
