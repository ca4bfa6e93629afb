"""The graph of a source, written where it is not yet as it should be.

First the Secret that its sensitive nodes refer to, then the graph: at no moment does a graph ask
for what is not there.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import msgspec

from pequod.api import reasons
from pequod.api.meta import ObjectReference
from pequod.api.platform import ResourceGraph, ResourceGraphSpec
from pequod.controllers.frontend.compiling import Compiled
from pequod.controllers.frontend.handover import Handover
from pequod.graph.desired import CREATE_ONLY
from pequod.kube.cache import Cache, Unreadable
from pequod.kube.client import Client, Write
from pequod.kube.errors import AlreadyExistsError, ConflictError
from pequod.kube.kinds import SECRETS, Kind
from pequod.kube.objects import Key, Object
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Stalled, Waiting

GRAPHS = Kind.of(ResourceGraph)
SOURCE_LABEL = "pequod.io/source-uid"
"""On everything that is kept for a source: the source's UID."""
FINALIZER = "pequod.io/resourcegraph"
AGAIN = 1.0
HEARD = 10.0
"""Seconds after which something that was made should have been heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The object that a graph is made for."""

    reference: ObjectReference
    namespace: str
    """Where its graph is kept."""
    graph: str
    """Name of its graph."""

    @property
    def uid(self) -> str:
        """Which of all objects that ever had the name."""
        return self.reference.uid or ""

    @property
    def key(self) -> Key:
        """Of its graph."""
        return Key(self.namespace, self.graph)

    def has(self, graph: ResourceGraph) -> bool:
        """Whether a graph was made for it, or for what had its name before."""
        known, own = graph.spec.source_ref, self.reference
        return known is not None and (known.kind, known.name) == (own.kind, own.name)

    def owner(self) -> Object:
        """As an owner reference has it."""
        return {
            "apiVersion": self.reference.api_version,
            "kind": self.reference.kind,
            "name": self.reference.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def metadata(self, name: str) -> Object:
        """Of an object that is kept for it, and goes with it."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {SOURCE_LABEL: self.uid},
            "ownerReferences": [self.owner()],
        }


class GraphStore:
    """Writes graphs as the operator, which alone may write those that have a source."""

    def __init__(
        self, client: Client, graphs: Cache[ResourceGraph], handover: Handover | None = None
    ) -> None:
        """`handover` takes sensitive parts to whoever executes graphs in this process."""
        self._client = client
        self._graphs = graphs
        self._handover = handover or Handover()
        self._made: dict[Key, float] = {}
        """Secrets that were made and not heard of yet, and when."""

    def find(self, source: Source) -> ResourceGraph | None:
        """The graph of a source, if there is one; raises a verdict when the name is taken."""
        found = self._graphs.get(source.key)
        if found is None:
            return None
        if isinstance(found, Unreadable):
            raise Waiting(
                reasons.UNREADABLE, f"ResourceGraph {source.key} cannot be read: {found.problem}"
            )
        if not source.has(found):
            known = found.spec.source_ref
            raise Stalled(
                reasons.ALREADY_EXISTS,
                f"ResourceGraph {source.key} exists and was made for "
                f"{f'{known.kind} {known.name}' if known else 'no source'}: delete or rename it, "
                "its name is needed",
            )
        return found

    def in_use(self, source: Source) -> ResourceGraph | None:
        """The graph of a source; that it cannot be read or used is told when it is stored."""
        found = self._graphs.get(source.key)
        if found is None or isinstance(found, Unreadable) or not source.has(found):
            return None
        return found

    async def keep_secret(self, source: Source, made: Compiled, ctx: Context) -> None:
        """Have the sensitive parts where the nodes refer to them, and hear when they are gone."""
        key = Key(source.namespace, made.secret)
        if not made.secret or await ctx.observed(SECRETS, key) is not None:
            self._made.pop(key, None)
            return
        now = asyncio.get_running_loop().time()
        if now - self._made.get(key, float("-inf")) < HEARD:
            return
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": source.metadata(made.secret),
            "type": "pequod.io/sensitive",
            "immutable": True,
            "data": {id_: b64encode(part).decode() for id_, part in made.sensitive.items()},
        }
        # One that exists is named for its content, which cannot be changed.
        with suppress(AlreadyExistsError):
            await self._client.create(SECRETS, secret)
        self._made[key] = now

    async def store(
        self, source: Source, spec: ResourceGraphSpec, made: Compiled | None = None
    ) -> ResourceGraph:
        """Have the graph so; no request when it is. `made` is what it was compiled to just now."""
        found = self.find(source)
        if found is not None:
            spec = _as_before(spec, found.spec)
            if found.spec == spec:
                return found
            if found.metadata.deletion_timestamp is not None:
                raise Waiting(
                    reasons.FINALIZING,
                    f"ResourceGraph {source.key} is being deleted; it is made anew when it is gone",
                )
        graph = await self._write(source, spec, found)
        if made is not None:
            parts = {(made.secret, id_): part for id_, part in made.sensitive.items()}
            self._handover.put(graph, parts)
        return graph

    async def suspend(self, source: Source) -> None:
        """Have the graph left alone, as its source is."""
        found = self.find(source)
        if found is None or found.spec.suspend or found.metadata.deletion_timestamp is not None:
            return
        await self.store(source, msgspec.structs.replace(found.spec, suspend=True))

    async def resume(self, source: Source, now: datetime) -> None:
        """Have the graph executed as it is; its time begins anew, since nothing was done in it."""
        found = self.in_use(source)
        if found is None or not found.spec.suspend or found.metadata.deletion_timestamp:
            return
        metadata = msgspec.structs.replace(found.spec.metadata, rendered_at=now)
        spec = msgspec.structs.replace(found.spec, suspend=False, metadata=metadata)
        await self.store(source, spec)

    async def _write(
        self, source: Source, spec: ResourceGraphSpec, found: ResourceGraph | None
    ) -> ResourceGraph:
        metadata = source.metadata(source.graph) | {"finalizers": [FINALIZER]}
        if found is None:
            metadata["resourceVersion"] = CREATE_ONLY
        else:
            metadata["uid"] = found.metadata.uid
        body = {
            "apiVersion": GRAPHS.api_version,
            "kind": GRAPHS.kind,
            "metadata": metadata,
            "spec": msgspec.to_builtins(spec),
        }
        encoded = msgspec.json.encode(body)
        try:
            answer = await self._client.apply_bytes(
                GRAPHS, source.graph, encoded, Write(force=True), namespace=source.namespace
            )
        except ConflictError as error:
            raise Waiting(
                reasons.CONFLICT,
                f"ResourceGraph {source.key} was changed at the same time; it is looked at again",
                after=AGAIN,
            ) from error
        # To whoever executes graphs, this is news.
        return self._graphs.observe(answer)


def _as_before(spec: ResourceGraphSpec, found: ResourceGraphSpec) -> ResourceGraphSpec:
    """Without another time for what was rendered before, unless it was left alone until now."""
    resumed = found.suspend and not spec.suspend
    if resumed or spec.metadata.render_hash != found.metadata.render_hash:
        return spec
    metadata = msgspec.structs.replace(spec.metadata, rendered_at=found.metadata.rendered_at)
    return msgspec.structs.replace(spec, metadata=metadata)
