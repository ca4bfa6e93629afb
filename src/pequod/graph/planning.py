"""Finds out what an execution would do, without doing it: the API server is asked by dry runs.

It is asked in the identity that would execute the graph, so that what that one may not do is in the
plan as well. What a change leaves over is in `leftovers`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pequod.api import reasons
from pequod.api.graph import InventoryEntry, Node
from pequod.graph import rehearsal
from pequod.graph.applying import RefusedError, not_ours
from pequod.graph.child import PRUNE
from pequod.graph.desired import Desired, UnusableObjectError, desired
from pequod.graph.differences import Difference, comparable, differences
from pequod.graph.fields import managers, our_fields, owns
from pequod.graph.foreseen import Steady, foreseen
from pequod.graph.foundations import is_defined_by
from pequod.graph.inventory import Inventory, unseen
from pequod.graph.leftovers import Leftovers
from pequod.graph.model import Ref, graph_of
from pequod.graph.ownership import leaves_replicas
from pequod.graph.plan import Action, Change, Plan, Subject, Wanted
from pequod.graph.probes import Probes
from pequod.graph.problems import explained, holders, is_immutable
from pequod.graph.record import Problem
from pequod.graph.takeover import require_acceptable
from pequod.kube.client import FIELD_MANAGER, Client, Write
from pequod.kube.discovery import Discovery
from pequod.kube.errors import FieldConflictError, KubeError, NotFoundError, UnknownKindError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

Outlook = Literal["changes", "unchanged", "awaited", "left"]

AT_ONCE = 16
_NOBODY = "a-plan"
"""Stands for the UID of a graph that does not exist yet."""
_LATER = "values of other nodes are filled in when it is applied"
_GOING = "somebody deletes it; it is made anew when it is gone"
_LAST = "it goes when everything else is applied"


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of the object of one node."""

    wanted: Wanted
    ref: Ref | None
    """None while its kind is not known."""
    outlook: Outlook = "unchanged"
    change: Change | None = None
    steady: Steady | None = None
    """What others may take values from: its object, if that is there and stays as it is."""


@dataclass(slots=True)
class _Kinds:
    discovery: Discovery
    known: dict[tuple[str, str], Kind] = field(default_factory=dict)

    async def of(self, object_: Mapping[str, Any]) -> Kind:
        name = (str(object_["apiVersion"]), str(object_["kind"]))
        if name not in self.known:
            self.known[name] = await self.discovery.find(*name)
        return self.known[name]


@dataclass(frozen=True, slots=True)
class _Made:
    """What the nodes themselves make that others need."""

    namespaces: frozenset[str]
    nodes: tuple[Node, ...]
    sources: frozenset[str]
    """The ids of those that others take values from."""

    @classmethod
    def by(cls, wanted: Sequence[Wanted]) -> "_Made":
        namespaces = (
            one.object["metadata"]["name"]
            for one in wanted
            if (one.object.get("apiVersion"), one.object.get("kind")) == ("v1", "Namespace")
        )
        return cls(
            namespaces=frozenset(namespaces),
            nodes=tuple(one.node for one in wanted),
            sources=frozenset(id_ for one in wanted for id_ in one.sources),
        )


class Planning:
    """Asks one API server in one identity's name."""

    def __init__(self, client: Client, discovery: Discovery, probes: Probes) -> None:
        self._client = client
        self._probes = probes
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._leftovers = Leftovers(client, discovery, self._slots)
        self._kinds = _Kinds(discovery)

    async def out_of_reach(self, subject: Subject, wanted: Sequence[Wanted]) -> list[str]:
        """Why objects are out of reach, in the words of an execution; no object is read for it."""
        found = []
        for one in wanted:
            try:
                body = await self._body(subject, one)
            except (UnknownKindError, UnusableObjectError):
                continue
            found += [f"node {one.node.id}: {text}" for text in subject.reach.problems(body)]
        return found

    async def planned(self, subject: Subject, wanted: Sequence[Wanted]) -> Plan:
        """What would be done for nodes, in the order in which they are given.

        Whoever takes values from others comes after them.
        """
        made = _Made.by(wanted)
        tasks: dict[str, asyncio.Task[_Found]] = {}
        async with asyncio.TaskGroup() as group:
            for one in wanted:
                sources = {id_: tasks[id_] for id_ in one.sources}
                task = group.create_task(self._bounded(subject, one, made, sources))
                tasks[one.node.id] = task
        found = [task.result() for task in tasks.values()]
        changes = [one.change for one in found if one.change is not None]
        pruned, left = await self._leftovers.found(subject, _stale(subject, found))
        if any(one.refused for one in changes):
            pruned = [replace(one, note=f"{one.note}; {_LAST}") for one in pruned]
        return Plan(
            changes=(*changes, *pruned),
            unchanged=sum(1 for one in found if one.outlook == "unchanged"),
            left=(*_refs(found, "left"), *left),
            awaited=_refs(found, "awaited"),
        )

    async def _bounded(
        self,
        subject: Subject,
        wanted: Wanted,
        made: _Made,
        sources: Mapping[str, asyncio.Task[_Found]],
    ) -> _Found:
        """What would happen to the object of a node, known when that of its sources is."""
        known = {id_: (await task).steady for id_, task in sources.items()}
        steady = {id_: one for id_, one in known.items() if one is not None}
        async with self._slots:
            found = await self._one(subject, wanted, made, steady)
        # Whole objects are kept only for those who ask.
        return found if wanted.node.id in made.sources else replace(found, steady=None)

    async def _one(
        self, subject: Subject, wanted: Wanted, made: _Made, steady: Mapping[str, Steady]
    ) -> _Found:
        """The object of a node, and what would happen to it."""
        try:
            body = await self._body(subject, wanted)
            if wanted.later:
                wanted = await foreseen(wanted, body, steady, self._probes)
                body = await self._body(subject, wanted)
        except (UnusableObjectError, KubeError) as error:
            return _Found(wanted, None, "changes", _bodiless(wanted, subject, made, error))
        except RefusedError as error:
            return _found(_change("Update", wanted, body, refused=error.problem), wanted, body)
        if problems := [*subject.reach.problems(body)]:
            # Whoever may not have an object is not told anything about it either.
            problem = Problem(reasons.OUT_OF_REACH, "; ".join(problems))
            return _found(_change("Create", wanted, body, refused=problem), wanted, body)
        try:
            return await self._met(subject, wanted, body, made)
        except KubeError as error:
            return _found(_refused("Update", wanted, body, error), wanted, body)

    async def _met(self, subject: Subject, wanted: Wanted, body: Desired, made: _Made) -> _Found:
        """What would happen to an object within reach; raises when it cannot be looked at."""
        live = await self._live(body)
        watches = wanted.node.apply_policy.mode == "Observe"
        if watches or subject.mirrors(wanted.node, body.ref, live):
            return _observed(subject, wanted, body, live)
        if live is None:
            return _found(await self._created(wanted, body, made), wanted, body)
        return _found(await self._changed(subject, wanted, body, live), wanted, body, live)

    async def _live(self, body: Desired) -> Object | None:
        ref = body.ref
        try:
            return await self._client.get(body.kind, ref.name, namespace=ref.namespace or None)
        except NotFoundError:
            return None

    async def _body(self, subject: Subject, wanted: Wanted) -> Desired:
        """What would be sent for a node; raises UnknownKindError, or UnusableObjectError."""
        kind = await self._kinds.of(wanted.object)
        graph = subject.uid or _NOBODY
        adopts = wanted.node.apply_policy.mode == "Adopt"
        return desired(wanted.object, kind, namespace=subject.namespace, graph=graph, adopts=adopts)

    async def _created(self, wanted: Wanted, body: Desired, made: _Made) -> Change:
        change = _change("Create", wanted, body, note=_later(wanted))
        if wanted.later or body.ref.namespace in made.namespaces:
            return change
        try:
            await self._send(body, "", force=False)
        except KubeError as error:
            return _refused("Create", wanted, body, error)
        return change

    async def _changed(
        self, subject: Subject, wanted: Wanted, body: Desired, live: Object
    ) -> Change | None:
        """What would become of an object that is there."""
        if not subject.owns(body.ref, live):
            return await self._joined(subject, wanted, body, live)
        if wanted.node.apply_policy.mode == "Create":
            return None
        if live["metadata"].get("deletionTimestamp"):
            return _change("Create", wanted, body, note=_GOING)
        if wanted.later:
            return _change("Update", wanted, body, note=_later(wanted))
        return await self._compared(subject, wanted, body, live)

    async def _joined(
        self, subject: Subject, wanted: Wanted, body: Desired, live: Object
    ) -> Change:
        """What would become of an object that is not the graph's: adopted, or left as it is."""
        named = wanted.node.apply_policy.mode == "Adopt"
        joins = named or subject.joins(wanted.node, body.ref, live)
        found = Desired(body.ref, body.kind, live)
        if joins and (problem := subject.reach.against_joining(found)):
            return _change("Adopt", wanted, body, refused=problem)
        if live["metadata"].get("deletionTimestamp"):
            return _change("Create", wanted, body, note=_GOING)
        label = graph_of(live)
        lives = bool(label) and await subject.lives(label)
        if lives or not joins:
            problem = not_ours(body.ref, live, lives=lives)
            return _change("Adopt" if joins else "Update", wanted, body, refused=problem)
        if wanted.later:
            return _change("Adopt", wanted, body, note=_later(wanted))
        return await self._adopted(wanted, body, live)

    async def _adopted(self, wanted: Wanted, body: Desired, live: Object) -> Change:
        """What would change of an object that joins the graph, and who managed it so far."""
        policy, uid = wanted.node.apply_policy, live["metadata"]["uid"]
        try:
            force = policy.conflict_policy == "Force"
            await require_acceptable(self._client, body, uid, force=force)
            found = await rehearsal.adopted(self._client, body, live, hidden=wanted.sensitive)
        except KubeError as error:
            return _failed("Adopt", wanted, body, live, error)
        others = ", ".join(one for one in managers(live["metadata"]) if one != FIELD_MANAGER)
        note = f"managed by {others} so far" if others else ""
        return _change("Adopt", wanted, body, found=found, note=note)

    async def _compared(
        self, subject: Subject, wanted: Wanted, body: Desired, live: Object
    ) -> Change | None:
        """What the apply of a node would make of a live object."""
        forces = wanted.node.apply_policy.conflict_policy == "Force"
        try:
            answer, note = await self._applied(
                body, live, takes=forces or wanted.node.id in subject.settled
            )
        except KubeError as error:
            return _failed("Update", wanted, body, live, error)
        if leaves_replicas(body) and owns(our_fields(live["metadata"]), "spec", "replicas"):
            # Who no longer says how many there are leaves that to others, as it is.
            answer = answer | {"spec": answer["spec"] | {"replicas": live["spec"]["replicas"]}}
        found = differences(comparable(live), comparable(answer), hidden=wanted.sensitive)
        return _change("Update", wanted, body, found=found, note=note) if found else None

    async def _applied(self, body: Desired, live: Object, *, takes: bool) -> tuple[Object, str]:
        """An object as an apply would leave it, and from whom that takes fields.

        Raises FieldConflictError where fields of others are not to be taken.
        """
        uid = live["metadata"]["uid"]
        try:
            return await self._send(body, uid, force=False), ""
        except FieldConflictError as error:
            if not takes:
                raise
            return await self._send(body, uid, force=True), f"{holders(error)} so far"

    async def _send(self, body: Desired, uid: str, *, force: bool) -> Object:
        answer = await self._client.apply(
            body.kind, body.with_precondition(uid), Write(force=force, dry_run=True)
        )
        return dict(answer)


def _stale(subject: Subject, found: Sequence[_Found]) -> list[InventoryEntry]:
    """What no node asks for any more; what cannot be applied as things are is asked for."""
    wanted = {one.ref.id for one in found if one.ref is not None}
    unusable = {one.wanted.node.id: one.wanted.object for one in found if one.ref is None}
    return Inventory(subject.inventory).stale(wanted | unseen(subject.inventory, unusable))


def _refs(found: Sequence[_Found], outlook: Outlook) -> tuple[Ref, ...]:
    return tuple(one.ref for one in found if one.outlook == outlook and one.ref is not None)


def _found(
    change: Change | None, wanted: Wanted, body: Desired, live: Object | None = None
) -> _Found:
    if change is not None:
        return _Found(wanted, body.ref, "changes", change)
    return _Found(wanted, body.ref, "unchanged", steady=_steady(wanted, live))


def _steady(wanted: Wanted, live: Object | None) -> Steady | None:
    return Steady(live, wanted.sensitive) if live is not None else None


def _later(wanted: Wanted) -> str:
    """What there is to know of a node whose values are not known yet."""
    return (wanted.waits or _LATER) if wanted.later else ""


def _observed(subject: Subject, wanted: Wanted, body: Desired, live: Object | None) -> _Found:
    """What becomes of an object that a node only looks at: it is waited for, or let go of."""
    if live is None:
        return _Found(wanted, body.ref, "awaited")
    found = Desired(body.ref, body.kind, live)
    mirrored = wanted.node.apply_policy.mode != "Observe"
    ours = subject.owns(body.ref, live)
    if mirrored and not ours and (problem := subject.reach.against_joining(found, mirrored=True)):
        return _found(_change("Adopt", wanted, body, refused=problem), wanted, body)
    known = any(one.id == body.ref.id for one in subject.inventory)
    outlook: Outlook = "left" if known else "unchanged"
    return _Found(wanted, body.ref, outlook, steady=_steady(wanted, live))


def _change(
    action: Action,
    wanted: Wanted,
    body: Desired,
    *,
    found: tuple[Difference, ...] = (),
    note: str = "",
    refused: Problem | None = None,
) -> Change:
    return Change(
        action=action,
        ref=body.ref,
        api_version=body.kind.api_version,
        node=wanted.node.id,
        differences=found,
        note=note,
        refused=refused,
    )


def _failed(
    action: Action, wanted: Wanted, body: Desired, live: Object, error: KubeError
) -> Change:
    """What becomes of an object whose apply fails; one that asks not to be deleted stays."""
    annotations = live["metadata"].get("annotations") or {}
    recreates = wanted.node.apply_policy.recreate == "OnImmutable"
    if is_immutable(error) and recreates and annotations.get(PRUNE) != "disabled":
        return _change("Recreate", wanted, body, note="an immutable field changes")
    return _refused(action, wanted, body, error)


def _refused(action: Action, wanted: Wanted, body: Desired, error: KubeError) -> Change:
    problem = explained(error, body.ref, sensitive=wanted.sensitive)
    return _change(action, wanted, body, refused=problem)


def _bodiless(wanted: Wanted, subject: Subject, made: _Made, error: Exception) -> Change:
    """An object of which nothing is known but its name, since its kind is not served or wrong."""
    change = _named(wanted, subject)
    unknown = isinstance(error, UnknownKindError)
    if unknown and any(is_defined_by(wanted.node, one) for one in made.nodes):
        return replace(change, note="its kind is made by the graph itself")
    reason = getattr(error, "reason", reasons.INVALID)
    return replace(change, refused=Problem(reason, f"{change.ref}: {error}"))


def _named(wanted: Wanted, subject: Subject) -> Change:
    object_ = wanted.object
    group, _, _ = str(object_["apiVersion"]).rpartition("/")
    metadata = object_["metadata"]
    place = metadata.get("namespace") or subject.namespace
    return Change(
        action="Create",
        ref=Ref(group, str(object_["kind"]), place, str(metadata["name"])),
        api_version=str(object_["apiVersion"]),
        node=wanted.node.id,
    )
