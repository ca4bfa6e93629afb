"""Objects that exist already and join a graph: which they are, and on what terms they do.

Everything is read in the tenant's name. What was found out is believed for a while: it is looked
for again only as long as an object of a node may still be somebody else's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace

import msgspec

from pequod.api.graph import Adopt, Node
from pequod.api.platform import ResourceGraph
from pequod.controllers.platform.identity import Actor
from pequod.controllers.platform.preparing import Prepared
from pequod.controllers.platform.views import POLL
from pequod.graph.access import Need
from pequod.graph.adopt import Adoption, Chosen, named, query, selected
from pequod.graph.desired import Desired
from pequod.graph.fields import previous_managers
from pequod.graph.members import Member
from pequod.graph.model import GRAPH_LABEL, Plan, Ref
from pequod.graph.problems import explained
from pequod.graph.reach import Reach
from pequod.graph.run import Run
from pequod.kube.client import METADATA_ONLY_LIST, Client, Selection, decoded
from pequod.kube.errors import KubeError, NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

AT_ONCE = 8


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Listed(msgspec.Struct, frozen=True):
    metadata: _Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopting:
    """Finds out, for one pass over one graph, which objects join it."""

    graph: ResourceGraph
    run: Run
    plan: Plan
    actor: Actor
    reach: Reach
    require: Callable[[Iterable[Need]], Awaitable[None]]
    """Raises a verdict when nobody answers for the graph, or may not do what is needed."""

    async def adopt(self, prepared: Prepared) -> Adoption | None:
        """Mark the nodes whose objects are adopted or mirrored; None when nobody asked for it."""
        if not self._is_asked_for(prepared):
            self.run.adoption = None
            return None
        adoption = self.run.adoption
        if adoption is None or not self._still_holds(adoption, prepared):
            adoption = await self._renewed(adoption, prepared)
        adoption.open = self._is_open(adoption.chosen, prepared)
        for id_ in adoption.refused.keys() & prepared.members.keys():
            del prepared.members[id_]
        prepared.unusable |= adoption.refused
        for id_ in self._joining(adoption, prepared):
            member = prepared.members[id_]
            prepared.members[id_] = self._marked(member, adoption)
        return adoption

    async def _renewed(self, known: Adoption | None, prepared: Prepared) -> Adoption:
        """Find out anew; what has come to be chosen is tried at once, whatever it failed of."""
        if known is None or known.generation != self.run.generation:
            self.run.compared.clear()
        found = self.run.adoption = await self._found_out(prepared)
        for id_ in found.chosen.nodes - (known.chosen.nodes if known is not None else frozenset()):
            self.run.records[id_].retry_at = 0.0
        return found

    @property
    def _spec(self) -> Adopt | None:
        return self.graph.spec.adopt

    @property
    def _mirrors(self) -> bool:
        return self._spec is not None and self._spec.strategy == "Mirror"

    def _is_asked_for(self, prepared: Prepared) -> bool:
        """By the graph; what a node asks for by itself is only judged where nobody else does."""
        return self._spec is not None or (
            self.reach.confined and any(_asks(one) for one in prepared.members.values())
        )

    def _joining(self, adoption: Adoption, prepared: Prepared) -> frozenset[str]:
        asking = {id_ for id_, one in prepared.members.items() if _asks(one)}
        return (adoption.chosen.nodes | asking) & prepared.members.keys()

    def _marked(self, member: Member, adoption: Adoption) -> Member:
        if self._mirrors and member.node.id in adoption.chosen.nodes:
            return mirroring(member)
        # Where the operator's own account acts, only what was looked at joins.
        fit = not self.reach.confined or member.node.id in adoption.found
        return replace(member, joins=fit)

    def _still_holds(self, adoption: Adoption, prepared: Prepared) -> bool:
        if (
            adoption.generation != self.run.generation
            or adoption.members != prepared.members.keys()
        ):
            return False
        return _clock() - adoption.at < POLL or not self._is_open(adoption.chosen, prepared)

    def _is_open(self, chosen: Chosen, prepared: Prepared) -> bool:
        """Whether an object may still be found that is not the graph's yet."""
        spec = self._spec
        if spec is not None and spec.mode == "LabelSelector":
            return self._mirrors or bool(self._unmade(prepared.members, prepared))
        return not self._mirrors and bool(self._unmade(chosen.nodes, prepared))

    def _unmade(self, ids: Collection[str], prepared: Prepared) -> list[Member]:
        """Those of the nodes whose objects are not known to be the graph's."""
        members = [prepared.members[id_] for id_ in ids if id_ in prepared.members]
        return [
            member
            for member in members
            if member.node.apply_policy.mode != "Observe"
            and not self.run.inventory.uid(member.ref.id)
        ]

    async def _found_out(self, prepared: Prepared) -> Adoption:
        if (known := self._said_before(prepared)) is not None:
            return known
        chosen = await self._chosen(prepared)
        adoption = Adoption(self.run.generation, chosen, frozenset(prepared.members), _clock())
        joining = self._joining(adoption, prepared)
        members = self._unmade(joining, prepared)
        if self._mirrors or (self._spec is not None and self._spec.dry_run):
            members = [prepared.members[id_] for id_ in joining]
        if members:
            await self.require(need for member in members for need in _needs(member))
            await self._introduce(adoption, members)
        if any(problem.transient for problem in adoption.refused.values()):
            adoption.at = float("-inf")
        return adoption

    def _said_before(self, prepared: Prepared) -> Adoption | None:
        """After a restart, what the status says of an adoption that has come to its end."""
        spec = self._spec
        if spec is None or spec.mode == "Explicit" or spec.dry_run:
            return None
        told = next((c for c in self.graph.status.conditions if c.type == "Adopted"), None)
        if told is None or (told.status, told.observed_generation) != ("True", self.run.generation):
            return None
        chosen = Chosen(frozenset(self._adopted_before(prepared)))
        if self._is_open(chosen, prepared):
            return None
        members = frozenset(prepared.members)
        return Adoption(self.run.generation, chosen, members, _clock(), said=told.message)

    def _adopted_before(self, prepared: Prepared) -> list[str]:
        """What was adopted or mirrored stays so, whatever became of the labels that chose it."""
        return [
            id_
            for id_, member in prepared.members.items()
            if member.node.apply_policy.mode not in {"Adopt", "Observe"}
            and (record := self.run.records.get(id_)) is not None
            and record.previous_managers
        ]

    async def _chosen(self, prepared: Prepared) -> Chosen:
        spec = self._spec
        if spec is None:
            return Chosen()
        refs = {id_: member.ref for id_, member in prepared.members.items()}
        if spec.mode == "Explicit" or spec.label_selector is None:
            return named(spec, self.plan.nodes, refs, self.run.namespace)
        written = {
            id_: member
            for id_, member in prepared.members.items()
            if member.node.apply_policy.mode != "Observe"
        }
        places = sorted(
            {(member.kind, member.ref.namespace) for member in written.values()}, key=str
        )
        await self.require(
            Need("list", kind.group, kind.plural, place, "") for kind, place in places
        )
        labels = query(spec.label_selector)
        found: list[Ref] = []
        for kind, place in places:
            found += await self._listed(kind, place, labels)
        also = self._adopted_before(prepared)
        return selected(found, {id_: one.ref for id_, one in written.items()}, also=also)

    async def _listed(self, kind: Kind, namespace: str, labels: str) -> list[Ref]:
        selection = Selection(namespace=namespace or None, labels=labels)
        found: list[Ref] = []
        pages = self.actor.client.pages(kind, selection, accept=METADATA_ONLY_LIST)
        async for page in pages:
            if page.anew:
                found.clear()
            for raw in page.items or ():
                metadata = decoded(raw, _Listed).metadata
                # What no node asks for any more is pruned, not adopted.
                if (metadata.labels or {}).get(GRAPH_LABEL) != self.run.graph:
                    found.append(Ref(kind.group, kind.kind, metadata.namespace, metadata.name))
        return found

    async def _introduce(self, adoption: Adoption, members: Iterable[Member]) -> None:
        """Look at objects that are to join, and remember who has managed them so far.

        That is stored with the intent, before anything is changed.
        """

        async def look(member: Member) -> None:
            try:
                live = await live_object(self.actor.client, member)
            except KubeError as error:
                adoption.refused[member.node.id] = explained(error, member.ref, sensitive=True)
                return
            if live is not None:
                self._judge(adoption, member, live)

        if self._mirrors and not self.reach.confined:
            return
        await each([one for one in members if not self.run.inventory.uid(one.ref.id)], look)

    def _judge(self, adoption: Adoption, member: Member, live: Object) -> None:
        metadata, id_ = live["metadata"], member.node.id
        if (metadata.get("labels") or {}).get(GRAPH_LABEL) == self.run.graph:
            adoption.found.add(id_)
            return
        mirrored = self._mirrors and id_ in adoption.chosen.nodes
        found = Desired(member.ref, member.kind, live)
        if problem := self.reach.against_joining(found, mirrored=mirrored):
            adoption.refused[id_] = problem
            return
        adoption.found.add(id_)
        if mirrored or (self._spec is not None and self._spec.dry_run):
            return
        record = self.run.record(id_, member.ref.id)
        if record.knows_managers(previous_managers(metadata)):
            self.run.stored = False


def mirroring(member: Member) -> Member:
    """A node whose object stays with others: it is only looked at."""
    policy = msgspec.structs.replace(member.node.apply_policy, mode="Observe")
    node: Node = msgspec.structs.replace(member.node, apply_policy=policy)
    return replace(member, node=node, mirrored=True, template=None, judge=None)


async def live_object(client: Client, member: Member) -> Object | None:
    """The object of a node as it is now, whoever it belongs to; None when there is none."""
    ref = member.ref
    try:
        return await client.get(member.kind, ref.name, namespace=ref.namespace or None)
    except NotFoundError:
        return None


async def each(members: Iterable[Member], do: Callable[[Member], Awaitable[None]]) -> None:
    """Do something for some nodes, not too many at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def bounded(member: Member) -> None:
        async with slots:
            await do(member)

    async with asyncio.TaskGroup() as group:
        for member in members:
            group.create_task(bounded(member))


def _asks(member: Member) -> bool:
    """Whether a node asks to be adopted by itself."""
    return member.node.apply_policy.mode == "Adopt"


def _needs(member: Member) -> Iterable[Need]:
    kind, ref = member.kind, member.ref
    return (
        Need(verb, kind.group, kind.plural, ref.namespace, ref.name) for verb in ("get", "patch")
    )


def _clock() -> float:
    return asyncio.get_running_loop().time()
