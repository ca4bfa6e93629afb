"""The composition root: everything that the operator consists of, put together."""

import asyncio
import platform as machine
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from prometheus_client import disable_created_metrics

from pequod.controllers.gitops.cluster import ClusterReconciler
from pequod.controllers.gitops.connection import Connections
from pequod.controllers.gitops.probe import Probe
from pequod.controllers.platform.digestkey import digest_key
from pequod.controllers.platform.resourcegraph import ResourceGraphReconciler
from pequod.controllers.platform.transform import TransformReconciler
from pequod.controllers.platform.wiring import (
    PlatformSettings,
    Rendering,
    platform,
    rendering_of,
)
from pequod.controllers.rollup.opchain import OPChainReconciler
from pequod.controllers.rollup.wiring import rollup
from pequod.kube.addresses import AddressRule, CheckedResolver
from pequod.kube.auth import Access
from pequod.kube.caches import Caches
from pequod.kube.client import Client
from pequod.kube.clusters import Clusters
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Fence, Limits, Transport
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder
from pequod.runtime.health import health_app, metrics_app, serving
from pequod.runtime.leader import Leadership
from pequod.runtime.lease import ApiLeaseStore
from pequod.runtime.manager import Manager
from pequod.runtime.reconciler import Reconciler
from pequod.settings import NAME, Settings

disable_created_metrics()  # type: ignore[no-untyped-call]

RECONCILERS: tuple[type[Reconciler[Any]], ...] = (
    ClusterReconciler,
    ResourceGraphReconciler,
    TransformReconciler,
    OPChainReconciler,
)
"""Every reconciler; `deploy/rbac/` is made from what they declare."""


@asynccontextmanager
async def _transport(
    access: Access, *, fence: Fence | None = None, limits: Limits | None = None
) -> AsyncIterator[Client]:
    transport = Transport(access, fence=fence, limits=limits)
    try:
        yield Client(transport)
    finally:
        await transport.close()


async def operate(settings: Settings, stop: asyncio.Event) -> None:
    """Run the operator until told to stop."""
    access = await asyncio.to_thread(own_access, settings.kubeconfig, settings.context)
    async with AsyncExitStack() as stack:
        # The Lease has a connection of its own: it must get through when nothing else does.
        limits = Limits(in_flight=2, timeout=5.0, connect=5.0, patience=5.0)
        quick = await stack.enter_async_context(_transport(access, limits=limits))
        await quick.version()
        leadership = _leadership(settings, quick) if settings.leader_election else None
        fence = leadership.check if leadership is not None else None
        client = await stack.enter_async_context(_transport(access, fence=fence))
        caches = Caches(client)
        stack.push_async_callback(caches.close)
        recorder = Recorder(client, instance=machine.node())
        rendering = None
        if settings.evaluator is not None and settings.library is not None:
            renders = rendering_of(settings.evaluator, settings.library, settings.policies)
            rendering = await stack.enter_async_context(renders)
        reconcilers = await _reconcilers(
            settings, stack, caches, recorder, rendering=rendering, quick=quick, fence=fence
        )
        manager = Manager(
            [Controller(reconciler, caches, recorder) for reconciler in reconcilers],
            caches=caches,
            recorder=recorder,
            leadership=leadership,
        )
        if settings.health is not None:
            checks = rendering.checks() if rendering is not None else {}
            app = health_app(manager.live(), manager.ready() | checks)
            await stack.enter_async_context(serving(app, settings.health))
        if settings.metrics is not None:
            await stack.enter_async_context(serving(metrics_app(), settings.metrics))
        await manager.run(stop)


async def _reconcilers(  # noqa: PLR0913 -- everything comes together here
    settings: Settings,
    stack: AsyncExitStack,
    caches: Caches,
    recorder: Recorder,
    *,
    rendering: Rendering | None,
    quick: Client,
    fence: Fence | None,
) -> tuple[Reconciler[Any], ...]:
    """Every reconciler, with what it needs."""
    addresses = AddressRule(allow_local=settings.allow_local_clusters)
    clusters = Clusters(fence=fence, resolver=lambda: CheckedResolver(addresses))
    stack.push_async_callback(clusters.close)
    connections = Connections(caches.client, clusters, addresses)
    key = await digest_key(quick, settings.namespace)
    family = platform(
        caches,
        clusters,
        recorder,
        key=key,
        rendering=rendering,
        settings=PlatformSettings(rules=settings.rules(), identity=settings.identity),
    )
    return (
        ClusterReconciler(connections, Probe(caches.client), interval=settings.probe_interval),
        *await stack.enter_async_context(family),
        await stack.enter_async_context(rollup(caches, key=key, settings=settings.rollup)),
    )


def _leadership(settings: Settings, client: Client) -> Leadership:
    store = ApiLeaseStore(client, namespace=settings.namespace, name=NAME)
    identity = f"{machine.node()}_{secrets.token_hex(4)}"
    return Leadership(store, identity=identity, timing=settings.timing, clock=_awake_or_asleep)


def _awake_or_asleep() -> float:
    """Seconds since the machine was started, those in which it slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
