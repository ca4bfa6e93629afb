"""The controllers of the family, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pequod.controllers.platform.identity import Identities, IdentityRules
from pequod.controllers.platform.resourcegraph import ResourceGraphReconciler, Rules
from pequod.controllers.platform.targets import Targets
from pequod.graph.digests import Digests
from pequod.graph.probes import Cel
from pequod.kube.caches import Caches
from pequod.kube.clusters import Clusters
from pequod.runtime.events import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """What the operator's flags say about the family."""

    rules: Rules
    identity: IdentityRules = field(default_factory=IdentityRules)


@asynccontextmanager
async def resource_graphs(
    caches: Caches,
    clusters: Clusters,
    recorder: Recorder,
    *,
    key: bytes,
    cel: Cel | None,
    settings: PlatformSettings,
) -> AsyncIterator[ResourceGraphReconciler]:
    """The reconciler of graphs, and everything that it keeps open."""
    targets = Targets(caches, clusters, Digests(key), namespace=settings.rules.namespace)
    try:
        yield ResourceGraphReconciler(
            caches.client,
            targets,
            Identities(caches.client, settings.identity, namespace=settings.rules.namespace),
            recorder,
            cel=cel,
            rules=settings.rules,
        )
    finally:
        await targets.close()
