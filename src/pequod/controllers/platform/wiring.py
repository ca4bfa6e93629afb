"""The controllers of the family, put together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pequod.api.platform import ResourceGraph
from pequod.controllers.frontend.handover import Handover
from pequod.controllers.frontend.revisions import PROJECTION, REVISIONS, SELECTION, Revisions
from pequod.controllers.frontend.storing import GRAPHS
from pequod.controllers.platform import policies
from pequod.controllers.platform.identity import Identities, IdentityRules
from pequod.controllers.platform.modules import Modules
from pequod.controllers.platform.planning import Planner
from pequod.controllers.platform.policies import PlatformPolicies, Sets
from pequod.controllers.platform.rendering import Renderer
from pequod.controllers.platform.resourcegraph import ResourceGraphReconciler, Rules
from pequod.controllers.platform.running import Runs
from pequod.controllers.platform.targets import Targets
from pequod.controllers.platform.transform import TransformReconciler
from pequod.evaluator.errors import EvaluationError
from pequod.evaluator.evaluator import Evaluator, program_version
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results
from pequod.graph.digests import Digests
from pequod.graph.probes import Cel
from pequod.kube.cache import Projection
from pequod.kube.caches import Caches
from pequod.kube.clusters import Clusters
from pequod.kube.kinds import NAMESPACES
from pequod.runtime.events import Recorder
from pequod.runtime.health import Check, UnhealthyError
from pequod.runtime.reconciler import Reconciler
from pequod.sources.library import Library, LibraryOptions, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSettings:
    """What the operator's flags say about the family."""

    rules: Rules
    identity: IdentityRules = field(default_factory=IdentityRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """What Transforms need besides what graphs need."""

    evaluator: Evaluator
    library: Library
    policies: Sets
    """The platform's own, in sets that namespaces choose from."""

    def checks(self) -> dict[str, Check]:
        """What is missing before anything can be rendered."""

        async def evaluator() -> str:
            try:
                return await self.evaluator.usable()
            except EvaluationError as error:
                raise UnhealthyError(str(error)) from error

        async def sources() -> str:
            try:
                return await asyncio.to_thread(self.library.store.usable)
            except OSError as error:
                raise UnhealthyError(f"the store cannot be written to: {error.strerror}") from error

        return {"evaluator": evaluator, "sources": sources}


@asynccontextmanager
async def rendering_of(
    program: Path, options: LibraryOptions, policies: Sets
) -> AsyncIterator[Rendering]:
    """What renders; the evaluator's workers are started when somebody first asks."""
    pool = Pool((str(program),))
    results = Results(options.root / "results")
    await results.open()
    try:
        async with opened(options, program) as library:
            evaluator = Evaluator(pool, results, version=await program_version(program))
            yield Rendering(evaluator=evaluator, library=library, policies=policies)
    finally:
        await pool.close()


@asynccontextmanager
async def platform(
    caches: Caches,
    clusters: Clusters,
    recorder: Recorder,
    *,
    key: bytes,
    rendering: Rendering | None,
    settings: PlatformSettings,
) -> AsyncIterator[tuple[Reconciler[Any], ...]]:
    """The reconcilers of the family; without anything that renders, graphs alone."""
    digests = Digests(key)
    targets = Targets(caches, clusters, digests, namespace=settings.rules.namespace)
    identities = Identities(caches.client, settings.identity, namespace=settings.rules.namespace)
    cel = rendering.evaluator if rendering is not None else None
    handover = Handover()
    graphs = ResourceGraphReconciler(
        targets, identities, recorder, cel=cel, rules=settings.rules, handover=handover
    )
    try:
        if rendering is None:
            yield (graphs,)
            return
        async with _transforms(
            caches, targets, identities, rendering, digests, handover
        ) as transforms:
            yield (graphs, transforms)
    finally:
        await targets.close()


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
    identities = Identities(caches.client, settings.identity, namespace=settings.rules.namespace)
    try:
        yield ResourceGraphReconciler(
            targets, identities, recorder, cel=cel, rules=settings.rules, handover=Handover()
        )
    finally:
        await targets.close()


@asynccontextmanager
async def _transforms(
    caches: Caches,
    targets: Targets,
    identities: Identities,
    rendering: Rendering,
    digests: Digests,
    handover: Handover,
) -> AsyncIterator[TransformReconciler]:
    library = rendering.library
    graphs = caches.share(GRAPHS, Projection(ResourceGraph))
    stored = caches.share(REVISIONS, PROJECTION, SELECTION)
    namespaces = caches.share(NAMESPACES, policies.PROJECTION)
    revisions = Revisions(caches.client, stored.cache)
    runs = Runs(caches.client, graphs.cache, revisions, handover)
    modules = Modules(library, identities)
    renderer = Renderer(
        evaluator=rendering.evaluator,
        policies=PlatformPolicies(library.resolver, rendering.policies, namespaces.cache),
        store=library.store,
        digests=digests,
    )
    planner = Planner(targets=targets, identities=identities, runs=runs, cel=rendering.evaluator)
    try:
        yield TransformReconciler(caches.client, modules, renderer, runs, planner)
    finally:
        await modules.close()
        graphs.release()
        stored.release()
        namespaces.release()
