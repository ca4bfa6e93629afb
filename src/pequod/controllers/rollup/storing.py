"""The graph of a chain, written stage by stage, and Secrets that no stage needs any more."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from pequod.api.graph import Graph, GraphMetadata, Node
from pequod.api.platform import ResourceGraph, ResourceGraphSpec
from pequod.controllers.frontend.compiling import Compiled, compiled, hash_of
from pequod.controllers.frontend.storing import SOURCE_LABEL, GraphStore, Source
from pequod.controllers.rollup.compiling import Parts, nodes_of, parts_in, parts_of
from pequod.controllers.rollup.components.chain import Chain
from pequod.controllers.rollup.configuration import Configuration
from pequod.controllers.rollup.upgrading import Situation, Stage, next_stage
from pequod.graph.digests import Digests
from pequod.kube.client import METADATA_ONLY_LIST, Client, Exactly, Selection, decoded
from pequod.kube.errors import ConflictError, NotFoundError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Described, Key
from pequod.runtime.context import Context


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
        found = self._store.find(source)
        if found is None or found.spec.suspend or found.metadata.deletion_timestamp is not None:
            return
        await self._store.store(source, msgspec.structs.replace(found.spec, suspend=True))

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
        selection = Selection(namespace=source.namespace, labels=f"{SOURCE_LABEL}={source.uid}")
        async for page in self._client.pages(SECRETS, selection, accept=METADATA_ONLY_LIST):
            for raw in page.items or ():
                await self._remove_unused(decoded(raw, Described), used, source)
        self._tidied[key] = state

    async def _remove_unused(self, found: Described, used: set[str], source: Source) -> None:
        name, uid = found.metadata.name, found.metadata.uid
        if name in used or found.metadata.labels.get(SOURCE_LABEL) != source.uid:
            return
        try:
            await self._client.delete(SECRETS, name, Exactly(uid), namespace=source.namespace)
        except (NotFoundError, ConflictError):
            return


def _secrets(nodes: Iterable[Node]) -> set[str]:
    return {node.object_from.secret_ref.name for node in nodes if node.object_from is not None}


def _spec(source: Source, parts: Parts, made: Compiled, ctx: Context) -> ResourceGraphSpec:
    nodes = nodes_of(parts)
    metadata = msgspec.structs.replace(
        made.metadata, render_hash=hash_of(nodes), rendered_at=ctx.now
    )
    return ResourceGraphSpec(nodes=nodes, source_ref=source.reference, metadata=metadata)
