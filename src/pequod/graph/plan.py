"""What an execution would do, found out without doing it: the API server is asked by dry runs.

A plan is a value: `spec.dryRun` puts it into a status, `pequod plan` prints it. It is made in the
identity that would execute the graph, so that what that one may not do is in it as well.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pequod.api import reasons
from pequod.api.graph import Adopt, DeletionPolicy, InventoryEntry, Node
from pequod.graph import rehearsal
from pequod.graph.adopt import adopts
from pequod.graph.desired import Desired, UnusableObjectError, desired
from pequod.graph.differences import Difference, comparable, described, differences
from pequod.graph.fields import managers
from pequod.graph.model import GRAPH_LABEL, Ref
from pequod.graph.problems import explained, is_immutable
from pequod.graph.record import Problem
from pequod.kube.client import FIELD_MANAGER, Client, Write
from pequod.kube.discovery import Discovery
from pequod.kube.errors import FieldConflictError, KubeError, NotFoundError, UnknownKindError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

Action = Literal["Create", "Update", "Delete", "Adopt", "Recreate"]

AT_ONCE = 16
_NOBODY = "a-plan"
"""Stands for the UID of a graph that does not exist yet."""
_WORDS: dict[Action, str] = {
    "Create": "to create",
    "Update": "to change",
    "Recreate": "to delete and make anew",
    "Adopt": "to adopt",
    "Delete": "to delete",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A node, with everything that would be sent for it."""

    node: Node
    object: Mapping[str, Any]
    """With its sensitive part."""
    later: bool = False
    """Whether values of other nodes are filled in when it is applied."""

    @property
    def sensitive(self) -> bool:
        """Whether its values are nobody's business."""
        object_ = self.object
        secret = (object_.get("apiVersion"), object_.get("kind")) == ("v1", "Secret")
        return secret or self.node.object_from is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would happen to one object."""

    action: Action
    ref: Ref
    api_version: str
    node: str = ""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    """What else there is to know."""
    refused: Problem | None = None
    """Why it would not come to it."""

    @property
    def message(self) -> str:
        """All of it, in a sentence."""
        parts = [f"would be refused: {self.refused.message}"] if self.refused else []
        if self.differences:
            parts.append(described(self.differences, longest=2000))
        return "; ".join([*parts, self.note] if self.note else parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that an execution would do, in its order."""

    changes: tuple[Change, ...] = ()
    unchanged: int = 0
    left: tuple[Ref, ...] = ()
    """Objects that would be let go of, and live on."""

    @property
    def refused(self) -> tuple[Change, ...]:
        """What would not come to it."""
        return tuple(one for one in self.changes if one.refused is not None)

    @property
    def summary(self) -> str:
        """The plan in half a line."""
        counts = {
            words: sum(1 for one in self.changes if one.action == action and not one.refused)
            for action, words in _WORDS.items()
        }
        parts = [f"{count} {words}" for words, count in counts.items() if count]
        parts += [f"{len(self.refused)} would be refused"] if self.refused else []
        parts += [f"{len(self.left)} left behind"] if self.left else []
        parts += [f"{self.unchanged} unchanged"] if self.unchanged or not parts else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The graph that a plan is for, as it is stored now."""

    namespace: str
    uid: str = ""
    """Empty while there is none."""
    inventory: tuple[InventoryEntry, ...] = ()
    deletion_policy: DeletionPolicy = "Delete"
    adopt: Adopt | None = None
    """Which objects that are not ours would join the graph."""

    def joins(self, node: Node, ref: Ref, live: Object) -> bool:
        """Whether an object that is not ours would be adopted for a node."""
        if self.adopt is None:
            return False
        labels = live["metadata"].get("labels") or {}
        return adopts(self.adopt, node, ref, labels, namespace=self.namespace)


@dataclass(slots=True)
class _Kinds:
    discovery: Discovery
    known: dict[tuple[str, str], Kind] = field(default_factory=dict)

    async def of(self, object_: Mapping[str, Any]) -> Kind:
        name = (str(object_["apiVersion"]), str(object_["kind"]))
        if name not in self.known:
            self.known[name] = await self.discovery.find(*name)
        return self.known[name]


class Planning:
    """Asks one API server in one identity's name."""

    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client = client
        self._kinds = _Kinds(discovery)
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def planned(self, subject: Subject, wanted: Sequence[Wanted]) -> Plan:
        """What would be done for nodes, in the order in which they are given."""
        made = {
            one.object["metadata"]["name"]
            for one in wanted
            if (one.object.get("apiVersion"), one.object.get("kind")) == ("v1", "Namespace")
        }
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._bounded(subject, one, made)) for one in wanted]
        found = [task.result() for task in tasks]
        changes = [change for _, change in found if change is not None]
        refs = {ref.id for ref, _ in found if ref is not None}
        pruned, left = self._pruned(subject, refs)
        return Plan(
            changes=(*changes, *pruned),
            unchanged=len(found) - len(changes),
            left=left,
        )

    async def _bounded(
        self, subject: Subject, wanted: Wanted, made: set[str]
    ) -> tuple[Ref | None, Change | None]:
        async with self._slots:
            return await self._one(subject, wanted, made)

    async def _one(
        self, subject: Subject, wanted: Wanted, made: set[str]
    ) -> tuple[Ref | None, Change | None]:
        """The object of a node, and what would happen to it; nothing when it is as it should be."""
        object_ = wanted.object
        graph = subject.uid or _NOBODY
        try:
            kind = await self._kinds.of(object_)
            body = desired(object_, kind, namespace=subject.namespace, graph=graph)
        except (UnknownKindError, UnusableObjectError) as error:
            return None, _unusable(wanted, subject, error)
        if wanted.node.apply_policy.mode == "Observe":
            return body.ref, None
        try:
            live = await self._client.get(kind, body.ref.name, namespace=body.ref.namespace or None)
        except NotFoundError:
            return body.ref, await self._created(wanted, body, made)
        except KubeError as error:
            return body.ref, _refused("Update", wanted, body, error)
        return body.ref, await self._changed(subject, wanted, body, live)

    async def _created(self, wanted: Wanted, body: Desired, made: set[str]) -> Change:
        change = Change(
            action="Create",
            ref=body.ref,
            api_version=body.kind.api_version,
            node=wanted.node.id,
            note=_LATER if wanted.later else "",
        )
        if wanted.later or body.ref.namespace in made:
            return change
        try:
            await self._send(body, "", force=False)
        except KubeError as error:
            return _refused("Create", wanted, body, error)
        return change

    async def _changed(
        self, subject: Subject, wanted: Wanted, body: Desired, live: Object
    ) -> Change | None:
        metadata = live["metadata"]
        label = (metadata.get("labels") or {}).get(GRAPH_LABEL)
        known = any(
            entry.id == body.ref.id and entry.uid == metadata.get("uid")
            for entry in subject.inventory
        )
        ours = known or (bool(subject.uid) and label == subject.uid)
        joins = not ours and subject.joins(wanted.node, body.ref, live)
        if joins and subject.adopt is not None and subject.adopt.strategy == "Mirror":
            return None
        joined = joins or (not ours and wanted.node.apply_policy.mode == "Adopt")
        if not ours and not joined:
            return _taken(wanted, body, live)
        if wanted.later:
            return _later(wanted, body, adopts=joined)
        if ours and wanted.node.apply_policy.mode == "Create":
            return None
        if joined:
            return await self._adopted(wanted, body, live)
        return await self._compared(wanted, body, live)

    async def _adopted(self, wanted: Wanted, body: Desired, live: Object) -> Change:
        """What would change of an object that joins the graph, and who managed it so far."""
        try:
            found = await rehearsal.adopted(self._client, body, live, hidden=wanted.sensitive)
        except KubeError as error:
            return _refused("Adopt", wanted, body, error)
        others = ", ".join(one for one in managers(live["metadata"]) if one != FIELD_MANAGER)
        note = f"managed by {others} so far" if others else ""
        return _change("Adopt", wanted, body, found=found, note=note)

    async def _compared(self, wanted: Wanted, body: Desired, live: Object) -> Change | None:
        """What the apply of a node would make of a live object."""
        policy, note = wanted.node.apply_policy, ""
        uid = live["metadata"]["uid"]
        try:
            answer = await self._send(body, uid, force=policy.conflict_policy == "Force")
        except FieldConflictError as error:
            # Who changed fields that were ours is shown with what would be taken back.
            note = explained(error, body.ref, sensitive=wanted.sensitive).message
            answer = await self._send(body, uid, force=True)
        except KubeError as error:
            if is_immutable(error) and policy.recreate == "OnImmutable":
                return _change("Recreate", wanted, body, note="an immutable field changes")
            return _refused("Update", wanted, body, error)
        found = differences(comparable(live), comparable(answer), hidden=wanted.sensitive)
        return _change("Update", wanted, body, found=found, note=note) if found else None

    async def _send(self, body: Desired, uid: str, *, force: bool) -> Object:
        answer = await self._client.apply(
            body.kind, body.with_precondition(uid), Write(force=force, dry_run=True)
        )
        return dict(answer)

    def _pruned(self, subject: Subject, wanted: set[str]) -> tuple[list[Change], tuple[Ref, ...]]:
        """What no node asks for any more, deepest first."""
        gone, left = [], []
        for entry in sorted(subject.inventory, key=lambda one: one.level or 0, reverse=True):
            if entry.id in wanted:
                continue
            ref = Ref.of(entry.id)
            if (entry.deletion_policy or subject.deletion_policy) == "Orphan":
                left.append(ref)
                continue
            group = f"{ref.group}/" if ref.group else ""
            gone.append(
                Change(
                    action="Delete",
                    ref=ref,
                    api_version=f"{group}{entry.version}",
                    note="no node asks for it any more",
                )
            )
        return gone, tuple(left)


_LATER = "values of other nodes are filled in when it is applied"


def _change(
    action: Action,
    wanted: Wanted,
    body: Desired,
    *,
    found: tuple[Difference, ...] = (),
    note: str = "",
) -> Change:
    return Change(
        action=action,
        ref=body.ref,
        api_version=body.kind.api_version,
        node=wanted.node.id,
        differences=found,
        note=note,
    )


def _later(wanted: Wanted, body: Desired, *, adopts: bool) -> Change:
    return _change("Adopt" if adopts else "Update", wanted, body, note=_LATER)


def _refused(action: Action, wanted: Wanted, body: Desired, error: KubeError) -> Change:
    return Change(
        action=action,
        ref=body.ref,
        api_version=body.kind.api_version,
        node=wanted.node.id,
        refused=explained(error, body.ref, sensitive=wanted.sensitive),
    )


def _taken(wanted: Wanted, body: Desired, live: Object) -> Change:
    others = ", ".join(managers(live["metadata"])) or "nobody that is known"
    text = (
        f"{body.ref} exists already, managed by {others}: remove it, adopt it, or give the object "
        "another name"
    )
    return Change(
        action="Update",
        ref=body.ref,
        api_version=body.kind.api_version,
        node=wanted.node.id,
        refused=Problem(reasons.ALREADY_EXISTS, text),
    )


def _unusable(wanted: Wanted, subject: Subject, error: Exception) -> Change:
    object_ = wanted.object
    group, _, _ = str(object_["apiVersion"]).rpartition("/")
    metadata = object_["metadata"]
    place = metadata.get("namespace") or subject.namespace
    ref = Ref(group, str(object_["kind"]), place, str(metadata["name"]))
    reason = getattr(error, "reason", reasons.INVALID)
    return Change(
        action="Create",
        ref=ref,
        api_version=str(object_["apiVersion"]),
        node=wanted.node.id,
        refused=Problem(reason, f"{ref}: {error}"),
    )
