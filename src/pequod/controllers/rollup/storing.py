"""The graph of a chain, written stage by stage, and Secrets that no stage needs any more."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from pequod.api import reasons
from pequod.api.graph import DeletionPolicy, Graph, GraphMetadata, Node
from pequod.api.platform import ResourceGraph, ResourceGraphSpec
from pequod.controllers.frontend.compiling import Compiled, compiled, hash_of
from pequod.controllers.frontend.storing import SOURCE_LABEL, GraphStore, Source
from pequod.controllers.rollup.compiling import Parts, nodes_of, parts_in, parts_of
from pequod.controllers.rollup.components.chain import Chain
from pequod.controllers.rollup.components.geth import DATA
from pequod.controllers.rollup.configuration import Configuration
from pequod.controllers.rollup.upgrading import Situation, Stage, next_stage
from pequod.graph.digests import Digests
from pequod.kube.client import METADATA_ONLY_LIST, Client, Exactly, Selection, decoded
from pequod.kube.errors import ConflictError, NotFoundError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Described, Key
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Waiting

AGAIN = 5.0


@dataclass(frozen=True, slots=True)
class _Made:
    """What was compiled last: the same question has the same answer."""

    generation: int
    configuration: Configuration = field(repr=False)
    compiled: Compiled = field(repr=False)


class Stages:
    """Stores what a chain is compiled to, one stage of an upgrade after the other."""

    def __init__(self, client: Client, store: GraphStore, digests: Digests) -> None:
        self._client = client
        self._store = store
        self._digests = digests
        self._made: dict[Key, _Made] = {}
        self._tidied: dict[Key, str] = {}
        """Chains, and the graphs for which no Secret is left that nothing refers to."""

    def find(self, source: Source) -> ResourceGraph | None:
        """The graph of a chain, if there is one."""
        return self._store.find(source)

    async def store(
        self, chain: Chain, generation: int, source: Source, now: Situation, ctx: Context
    ) -> tuple[ResourceGraph, Stage]:
        """Have the next stage in the graph; no request when it is there."""
        made = await self._compiled(chain, generation, source, ctx)
        found = self._store.find(source)
        wanted = parts_in(made.nodes)
        stage = next_stage(wanted, parts_in(found.spec.nodes), now) if found else Stage(wanted)
        await self._store.keep_secret(source, made, ctx)
        graph = await self._store.store(source, _spec(source, stage.parts, made, ctx))
        await self._tidy(source, graph, made)
        return graph, stage

    async def suspend(self, source: Source) -> None:
        """Have the graph left alone as well."""
        await self._store.suspend(source)

    async def resume(self, source: Source, ctx: Context) -> None:
        """Have what is stored executed as it is, if it was left alone until now."""
        await self._store.resume(source, ctx.now)

    async def have_volume_end(self, source: Source, policy: DeletionPolicy) -> None:
        """Have the graph know what becomes of the volume when it is deleted; raises until it does.

        The graph may be older than what the chain says now: rendered before that, or suspended.
        """
        graph = self._store.find(source)
        if graph is None or graph.metadata.deletion_timestamp is not None:
            return
        kept: DeletionPolicy | None = "Orphan" if policy == "Orphan" else None
        nodes = tuple(_ending(one, kept) if one.id == DATA else one for one in graph.spec.nodes)
        if nodes != graph.spec.nodes:
            metadata = msgspec.structs.replace(graph.spec.metadata, render_hash=hash_of(nodes))
            spec = msgspec.structs.replace(
                graph.spec, nodes=nodes, metadata=metadata, suspend=False
            )
            graph = await self._store.store(source, spec)
        entry = next((one for one in graph.status.inventory if one.node == DATA), None)
        if entry is not None and entry.deletion_policy != kept:
            raise Waiting(
                reasons.FINALIZING,
                f"ResourceGraph {source.key} is being told what becomes of the volume",
                after=AGAIN,
            )

    def forget(self, key: Key) -> None:
        """A chain is gone."""
        self._made.pop(key, None)
        self._tidied.pop(key, None)

    async def _compiled(
        self, chain: Chain, generation: int, source: Source, ctx: Context
    ) -> Compiled:
        known = self._made.get(ctx.key)
        if (
            known is not None
            and known.generation == generation
            and known.configuration is chain.configuration
        ):
            return known.compiled
        made = await asyncio.to_thread(self._compile, chain, source, ctx)
        self._made[ctx.key] = _Made(generation, chain.configuration, made)
        return made

    def _compile(self, chain: Chain, source: Source, ctx: Context) -> Compiled:
        graph = Graph(nodes=nodes_of(parts_of(chain)))
        return compiled(
            graph, name=source.graph, digests=self._digests, origin=GraphMetadata(), now=ctx.now
        )

    async def _tidy(self, source: Source, graph: ResourceGraph, made: Compiled) -> None:
        """Remove Secrets that neither the graph nor what it becomes refers to."""
        key, state = Key(source.namespace, source.graph), graph.spec.metadata.render_hash or ""
        if self._tidied.get(key) == state:
            return
        used = {made.secret, *_secrets(graph.spec.nodes)}
        for found in await self._own_secrets(source):
            name = found.metadata.name
            if name.startswith(f"{source.graph}-") and name not in used:
                await self._remove(found, source)
        self._tidied[key] = state

    async def remove_secrets(self, source: Source) -> None:
        """Remove every Secret that was made for a chain: the next one of its name has its own."""
        for found in await self._own_secrets(source):
            await self._remove(found, source)

    async def _own_secrets(self, source: Source) -> list[Described]:
        selection = Selection(namespace=source.namespace, labels=f"{SOURCE_LABEL}={source.uid}")
        pages = self._client.pages(SECRETS, selection, accept=METADATA_ONLY_LIST)
        known = [decoded(raw, Described) async for page in pages for raw in page.items or ()]
        return [one for one in known if one.metadata.labels.get(SOURCE_LABEL) == source.uid]

    async def _remove(self, found: Described, source: Source) -> None:
        exactly = Exactly(found.metadata.uid)
        with suppress(NotFoundError, ConflictError):
            name = found.metadata.name
            await self._client.delete(SECRETS, name, exactly, namespace=source.namespace)


def _ending(node: Node, policy: DeletionPolicy | None) -> Node:
    asked = msgspec.structs.replace(node.apply_policy, deletion_policy=policy)
    return msgspec.structs.replace(node, apply_policy=asked)


def _secrets(nodes: Iterable[Node]) -> set[str]:
    return {node.object_from.secret_ref.name for node in nodes if node.object_from is not None}


def _spec(source: Source, parts: Parts, made: Compiled, ctx: Context) -> ResourceGraphSpec:
    nodes = nodes_of(parts)
    metadata = msgspec.structs.replace(
        made.metadata, render_hash=hash_of(nodes), rendered_at=ctx.now
    )
    return ResourceGraphSpec(nodes=nodes, source_ref=source.reference, metadata=metadata)
