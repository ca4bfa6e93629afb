"""The nodes of a graph, ready to be executed: kinds found, objects made, limits of reach kept."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pequod.api import reasons
from pequod.api.graph import Node
from pequod.controllers.frontend.handover import Parts
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.targets import Target
from pequod.graph.desired import (
    Desired,
    UnusableObjectError,
    desired,
    reference,
    with_sensitive,
)
from pequod.graph.inventory import Intent
from pequod.graph.members import Member
from pequod.graph.model import Plan, Ref, object_problems
from pequod.graph.problems import explained
from pequod.graph.reach import Reach
from pequod.graph.record import Problem
from pequod.graph.run import Judged, Run
from pequod.graph.values import Template
from pequod.kube.client import Client
from pequod.kube.errors import KubeError, NotFoundError, UnknownKindError
from pequod.kube.kinds import SECRETS, Kind
from pequod.kube.objects import Key, Object, Secret
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Stalled

AGAIN = 30.0
"""Seconds after which nodes are looked at again that could not be executed."""


UNSERVED = 15.0
"""Seconds for which a kind may not be served yet although everything before it is ready."""


class OutOfReachError(UnusableObjectError):
    """An object that reaches too far with the values of other nodes."""

    reason = reasons.OUT_OF_REACH


class Sensitive:
    """The Secrets that hold sensitive parts: each is read once in a pass, in the tenant's name."""

    def __init__(self, client: Client, namespace: str, handed: Callable[[], Parts]) -> None:
        self._client = client
        self._namespace = namespace
        self._handed = handed
        self._reading: dict[str, asyncio.Task[Secret]] = {}

    async def part(self, node: Node) -> tuple[bytes, str]:
        """The sensitive part of a node, and where it stands."""
        assert node.object_from is not None, "asked for by those that have one"
        reference_ = node.object_from.secret_ref
        where = f"Secret/{self._namespace}/{reference_.name}, key {reference_.key},"
        handed = self._handed().get((reference_.name, reference_.key))
        if handed is not None:
            return handed, where
        secret = await self._secret(reference_.name)
        part = secret.content.get(reference_.key)
        if part is None:
            raise UnusableObjectError(f"{where} does not exist")
        return part, where

    async def _secret(self, name: str) -> Secret:
        reading = self._reading.get(name)
        if reading is None:
            coroutine = self._client.get(SECRETS, name, namespace=self._namespace, type=Secret)
            reading = self._reading[name] = asyncio.ensure_future(coroutine)
        return await asyncio.shield(reading)


@dataclass(slots=True)
class Prepared:
    """What can be executed of a graph, and what cannot."""

    members: dict[str, Member] = field(default_factory=dict)
    unusable: dict[str, Problem] = field(default_factory=dict)
    """Nodes that cannot be executed as things are."""
    early: dict[str, str] = field(default_factory=dict)
    """Nodes whose kind is not served yet, and what they wait for."""
    out_of_reach: list[str] = field(default_factory=list)

    def without(self, failed: Mapping[Kind, KubeError]) -> None:
        """Leave nodes out of which nothing can be known at the moment."""
        for id_, member in tuple(self.members.items()):
            error = failed.get(member.kind)
            if error is not None and member.node.apply_policy.mode != "Observe":
                del self.members[id_]
                text = f"{member.ref}: objects of its kind cannot be listed: {error}"
                self.unusable[id_] = Problem(error.reason, text, transient=True)

    def unasked(self, failed: Mapping[str, KubeError]) -> None:
        """Leave nodes out that could not be asked for: what is not known is not absent."""
        for id_, error in failed.items():
            ref = self.members.pop(id_).ref
            self.unusable[id_] = explained(error, ref, sensitive=False)

    def leave_out(self, ref: Ref, problem: Problem) -> None:
        """Leave the node of an object out, for a reason."""
        for id_ in [id_ for id_, member in self.members.items() if member.ref == ref]:
            del self.members[id_]
            self.unusable[id_] = problem

    def intents(self, plan: Plan) -> list[Intent]:
        """What is to be written down before the first write."""
        return [
            Intent(
                ref=member.ref,
                version=member.kind.version,
                node=id_,
                level=plan.levels[id_],
                deletion_policy=member.node.apply_policy.deletion_policy,
            )
            for id_, member in self.members.items()
            if member.node.apply_policy.mode != "Observe"
        ]

    def kinds(self) -> frozenset[Kind]:
        """Of everything that is written, and therefore watched."""
        return frozenset(
            member.kind
            for member in self.members.values()
            if member.node.apply_policy.mode != "Observe"
        )


class Preparation:
    """Prepares one graph for one pass."""

    def __init__(
        self,
        run: Run,
        target: Target,
        actor: Actor,
        reach: Reach,
        ctx: Context,
        handed: Callable[[], Parts],
    ) -> None:
        self._run = run
        self._target = target
        self._actor = actor
        self._reach = reach
        self._ctx = ctx
        self._sensitive = Sensitive(actor.home, run.namespace, handed)
        self._kinds: dict[tuple[str, str], Kind | UnknownKindError] = {}
        self._problems: list[str] = []
        """Why nodes are out of reach."""
        self._templates: Mapping[str, Template] = {}

    async def prepared(self, plan: Plan) -> Prepared:
        """Every node of a plan."""
        made = Prepared()
        self._templates = plan.templates
        for node in plan:
            try:
                member = await self._member(node, plan)
            except (UnknownKindError, UnusableObjectError) as error:
                waits = self._is_early(node, plan) if isinstance(error, UnknownKindError) else ""
                if waits:
                    made.early[node.id] = waits
                    continue
                made.unusable[node.id] = Problem(error.reason, f"node {node.id}: {error}")
                continue
            except KubeError as error:
                # What its kind is, or its Secret, cannot be known at the moment.
                text = f"node {node.id}: {error}; it is tried again"
                made.unusable[node.id] = Problem(error.reason, text, transient=True)
                continue
            self._run.unserved.pop(node.id, None)
            made.members[node.id] = member
        made.out_of_reach = self._problems
        return made

    def _is_early(self, node: Node, plan: Plan) -> str:
        """What a node waits for whose kind is not served; empty when waiting is of no use.

        Something that it depends on may be what brings the kind, such as its definition; it takes
        a moment until the API server serves what was defined.
        """
        others = plan.edges[node.id]
        if not others:
            return ""
        behind = [id_ for id_ in others if not self._run.records[id_].is_settled]
        if behind:
            self._run.unserved.pop(node.id, None)
            return f"waits for {', '.join(behind[:5])}"
        now = asyncio.get_running_loop().time()
        if now - self._run.unserved.setdefault(node.id, now) < UNSERVED:
            return "waits until the API server serves its kind"
        return ""

    async def _member(self, node: Node, plan: Plan) -> Member:
        kind = await self._kind(node)
        ref = reference(node.object, kind, self._run.namespace)
        version = await self._version(node)
        known = self._run.judged.get(node.id)
        if known is None or known.version != version:
            known = self._judged(node, kind, version)
        others = dict.fromkeys((*plan.edges[node.id], known.maker))
        after = tuple(id_ for id_ in others if id_ and id_ != node.id)
        filled = node.apply_policy.mode != "Observe" and self._takes_values(node)
        return Member(
            node=node,
            kind=kind,
            ref=ref,
            digest=known.digest,
            body=self._body(node, kind),
            sensitive=node.object_from is not None or (ref.group, ref.kind) == ("", "Secret"),
            also_after=tuple(id_ for id_ in after if id_ not in node.depends_on),
            template=self._templates[node.id] if filled else None,
            judge=self._judge(node, kind, version, after) if filled else None,
        )

    async def _kind(self, node: Node) -> Kind:
        name = (str(node.object["apiVersion"]), str(node.object["kind"]))
        if name not in self._kinds:
            try:
                self._kinds[name] = await self._target.discovery.find(*name)
            except UnknownKindError as error:
                self._kinds[name] = error
        found = self._kinds[name]
        if isinstance(found, UnknownKindError):
            raise found
        return found

    async def _version(self, node: Node) -> str:
        """Which version of its sensitive part a node has; its content stays where it is."""
        if node.object_from is None:
            return ""
        key = Key(self._run.namespace, node.object_from.secret_ref.name)
        found = await self._ctx.observed(SECRETS, key)
        if found is None:
            raise UnusableObjectError(f"Secret/{key} does not exist; objectFrom names it")
        return f"{found.metadata.uid}/{found.metadata.resource_version}"

    def _judged(self, node: Node, kind: Kind, version: str) -> Judged:
        """What is found out about a node once for each generation; what is wrong, each time."""
        plain = self._desired(self._known(node), node, kind)
        judged = Judged(version, self._digest(node, plain, version), self._reach.maker(plain))
        problems = [f"node {node.id}: {problem}" for problem in self._reach.problems(plain)]
        self._problems += problems
        if not problems:
            self._run.judged[node.id] = judged
        return judged

    def _digest(self, node: Node, plain: Desired, version: str) -> str:
        body = plain.body
        if node.object_from is not None:
            part = msgspec.to_builtins(node.object_from)
            body = {"object": body, "sensitive": part, "version": version}
        return self._target.children.digests.desired(body)

    def _desired(self, object_: Mapping[str, Any], node: Node, kind: Kind) -> Desired:
        return desired(
            object_,
            kind,
            namespace=self._run.namespace,
            graph=self._run.graph,
            adopts=node.apply_policy.mode == "Adopt",
        )

    def _takes_values(self, node: Node) -> bool:
        found = self._templates.get(node.id)
        return found is not None and bool(found.sources)

    def _known(self, node: Node) -> Mapping[str, Any]:
        """The object of a node, as far as it is known without values of others."""
        found = self._templates.get(node.id)
        return node.object if found is None else found.blanked(node.object)

    def _whole(self, node: Node) -> Mapping[str, Any]:
        """The object of a node with the values that were filled in last."""
        if not self._takes_values(node):
            return self._known(node)
        record = self._run.records.get(node.id)
        values = record.filled.values if record is not None and record.filled is not None else None
        if values is None:
            raise UnusableObjectError("values of other nodes were not filled in yet")
        return self._templates[node.id].filled(node.object, values)

    def _judge(
        self, node: Node, kind: Kind, version: str, after: tuple[str, ...]
    ) -> Callable[[Mapping[str, Any]], str]:
        """What judges an object with values as it was judged without: they may have brought more.

        Returns the digest.
        """

        def judged(values: Mapping[str, Any]) -> str:
            object_: Object = self._templates[node.id].filled(node.object, values)
            for problem in object_problems(msgspec.structs.replace(node, object=object_)):
                raise UnusableObjectError(problem)
            wanted = self._desired(object_, node, kind)
            for problem in self._reach.problems(wanted):
                raise OutOfReachError(problem)
            maker = self._reach.maker(wanted)
            if maker and maker not in {node.id, *after}:
                raise OutOfReachError(
                    f"it runs as the ServiceAccount of node {maker}: add that to its dependsOn"
                )
            return self._digest(node, wanted, version)

        return judged

    def _body(self, node: Node, kind: Kind) -> Callable[[], Awaitable[Desired]]:
        async def made() -> Desired:
            object_ = self._whole(node)
            plain = self._desired(object_, node, kind)
            if node.object_from is None:
                return plain
            try:
                part, where = await self._sensitive.part(node)
            except NotFoundError as error:
                raise UnusableObjectError("the Secret that objectFrom names is gone") from error
            wanted = self._desired(with_sensitive(object_, part, where=where), node, kind)
            for problem in self._reach.problems(wanted):
                raise UnusableObjectError(problem)
            if self._reach.maker(wanted) != self._reach.maker(plain):
                raise UnusableObjectError(f"{where} must not name a ServiceAccount")
            return wanted

        return made


def require_distinct(prepared: Prepared) -> None:
    """Refuse a graph in which two nodes are the same object, however they name it."""
    seen: dict[Ref, str] = {}
    for id_, member in prepared.members.items():
        other = seen.setdefault(member.ref, id_)
        if other != id_:
            text = f"nodes {other} and {id_} are the same object, {member.ref}: remove one of them"
            raise Stalled(reasons.INVALID_GRAPH, text)


def require_reach(prepared: Prepared) -> None:
    """Refuse a graph whose objects are out of reach, naming all of them."""
    if prepared.out_of_reach:
        shown = "; ".join(prepared.out_of_reach[:10])
        more = len(prepared.out_of_reach) - 10
        raise Stalled(reasons.OUT_OF_REACH, f"{shown}; and {more} more" if more > 0 else shown)
