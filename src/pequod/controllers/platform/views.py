"""What is known of the live objects of one graph: watched where possible, asked for elsewhere."""

import asyncio
from collections.abc import Collection

from pequod.controllers.platform.identity import Actor
from pequod.graph.child import Child
from pequod.graph.children import Children
from pequod.graph.fields import previous_managers
from pequod.graph.members import Member
from pequod.graph.rehearsal import differing
from pequod.graph.run import Compared, Polled, Run
from pequod.kube.client import decoded
from pequod.kube.errors import KubeError, NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

POLL = 30.0
"""Seconds for which an object that cannot be watched is believed to be as it was."""
_AT_ONCE = 8


class LiveView:
    """The live objects of one graph in one pass."""

    def __init__(self, run: Run, children: Children, watched: Collection[Kind]) -> None:
        self._run = run
        self._children = children
        self._watched = watched

    def get(self, member: Member) -> Child | None:
        """The object of a node; None when there is none that is known to be the graph's."""
        if self._is_polled(member):
            polled = self._run.polled.get(member.ref.id)
            return polled.child if polled is not None else None
        return self._children.get(member.kind, member.ref, self._run.graph)

    def put(self, member: Member, child: Child) -> None:
        """The object of a node as an answer has just shown it."""
        if self._is_polled(member):
            self._run.polled[member.ref.id] = Polled(_clock(), child)

    def polled(self, members: Collection[Member]) -> list[Member]:
        """Those that have to be asked for."""
        return [member for member in members if self._is_polled(member)]

    async def poll(self, members: Collection[Member], actor: Actor) -> dict[str, KubeError]:
        """Ask for what cannot be watched, if it is time; why some nodes could not be asked for."""
        slots = asyncio.Semaphore(_AT_ONCE)
        failed: dict[str, KubeError] = {}

        async def ask(member: Member) -> None:
            async with slots:
                try:
                    child = await self._asked(member, actor)
                except KubeError as error:
                    failed[member.node.id] = error
                    return
                self._run.polled[member.ref.id] = Polled(_clock(), child)

        async with asyncio.TaskGroup() as group:
            for member in self.polled(members):
                if self._is_due(member):
                    group.create_task(ask(member))
        return failed

    async def _asked(self, member: Member, actor: Actor) -> Child | None:
        ref = member.ref
        try:
            answer = await actor.client.get_bytes(
                member.kind, ref.name, namespace=ref.namespace or None
            )
        except NotFoundError:
            return None
        child = self._children.read(answer)
        if member.mirrored:
            await self._compare(member, actor, child, decoded(answer, Object))
        if member.node.apply_policy.mode != "Observe" and child.metadata.graph != self._run.graph:
            return None
        return child

    async def _compare(self, member: Member, actor: Actor, child: Child, live: Object) -> None:
        """Find out how a mirrored object differs, if it or what is asked for has changed."""
        version = child.metadata.resource_version
        known = self._run.compared.get(member.ref.id)
        if known is None or (known.version, known.digest) != (version, member.digest):
            differs, sure = await differing(actor.client, member, live)
            self._run.compared[member.ref.id] = Compared(
                version if sure else "", member.digest, differs
            )
            record = self._run.record(member.node.id, member.ref.id)
            record.knows_managers(previous_managers(live["metadata"]))

    def _is_polled(self, member: Member) -> bool:
        return member.node.apply_policy.mode == "Observe" or member.kind not in self._watched

    def _is_due(self, member: Member) -> bool:
        known = self._run.polled.get(member.ref.id)
        return known is None or _clock() - known.at >= POLL


def _clock() -> float:
    return asyncio.get_running_loop().time()
