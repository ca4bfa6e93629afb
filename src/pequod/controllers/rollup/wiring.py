"""The controller of the family, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.storing import GRAPHS, GraphStore
from pequod.controllers.rollup.loading import Loader
from pequod.controllers.rollup.observers import Observers, Pace
from pequod.controllers.rollup.opchain import OPChainReconciler
from pequod.controllers.rollup.places import TEMPLATE, Places
from pequod.controllers.rollup.storing import Stages
from pequod.graph.digests import Digests
from pequod.jsonrpc.client import JsonRpc
from pequod.kube.addresses import AddressRule
from pequod.kube.cache import Projection
from pequod.kube.caches import Caches


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupSettings:
    """What the operator's flags say about the family."""

    rpc: str = TEMPLATE
    """Where the programs of a chain are asked."""
    allow_local: bool = False
    """Whether L1 and the programs may be on this machine."""
    pace: Pace = field(default_factory=Pace)


@asynccontextmanager
async def rollup(
    caches: Caches, *, key: bytes, settings: RollupSettings
) -> AsyncIterator[OPChainReconciler]:
    """The reconciler of chains, and everything that it keeps open."""
    rpc = JsonRpc(AddressRule(allow_local=settings.allow_local))
    observers = Observers(rpc, settings.pace)
    graphs = caches.share(GRAPHS, Projection(ResourceGraph))
    stages = Stages(caches.client, GraphStore(caches.client, graphs.cache), Digests(key))
    try:
        yield OPChainReconciler(
            caches.client,
            Loader(caches.client),
            stages,
            observers,
            Places(caches.client, settings.rpc),
            graphs.cache,
        )
    finally:
        await observers.close()
        await rpc.close()
        graphs.release()
