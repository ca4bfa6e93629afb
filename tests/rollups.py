"""OPChains for tests: compiled and executed by the real controllers in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import chains
from doubles.chain import ChainDouble
from graphs import OPERATOR_NAMESPACE, Graphs, Journal, JournalledTransport, closing
from pequod.base.backoff import Backoff
from pequod.base.tasks import end
from pequod.controllers.platform.resourcegraph import Rules
from pequod.controllers.platform.wiring import PlatformSettings, platform
from pequod.controllers.rollup.observers import Pace
from pequod.controllers.rollup.wiring import RollupSettings, rollup
from pequod.kube.addresses import AddressRule, CheckedResolver
from pequod.kube.auth import Access
from pequod.kube.caches import Caches
from pequod.kube.client import Client, Selection
from pequod.kube.clusters import Clusters
from pequod.runtime.controller import Controller
from pequod.runtime.events import Recorder

API = "/apis/rollup.oplabs.io/v1alpha1"
KEY = b"k" * 32
QUICK = Pace(look=0.5, accounts=0.5, tell=0.5)
Object = dict[str, Any]


@dataclass
class Family:
    """The running controllers, and what they ask for."""

    journal: Journal


class StartFamily(Protocol):
    """Runs the controllers until the block ends."""

    def __call__(
        self, double: ChainDouble, *, pace: Pace = ..., allow_local: bool = ...
    ) -> AbstractAsyncContextManager[Family]: ...


@asynccontextmanager
async def running(
    access: Access, namespace: str, double: ChainDouble, *, pace: Pace, allow_local: bool
) -> AsyncIterator[Family]:
    """The controllers of one namespace, under the operator's account."""
    transport = JournalledTransport(access)
    transport.journal = journal = Journal()
    caches = Caches(Client(transport))
    recorder = Recorder(caches.client, instance="test")
    rule = AddressRule(allow_local=True)
    clusters = Clusters(fence=None, resolver=lambda: CheckedResolver(rule))
    rules = Rules(namespace=OPERATOR_NAMESPACE, account="pequod-operator")
    settings = RollupSettings(rpc=double.template, allow_local=allow_local, pace=pace)
    graphs = platform(
        caches,
        clusters,
        recorder,
        key=KEY,
        rendering=None,
        settings=PlatformSettings(rules=rules),
    )
    async with (
        closing(transport, caches, clusters),
        graphs as reconcilers,
        rollup(caches, key=KEY, settings=settings) as opchains,
    ):
        controllers = [
            Controller(
                one,
                caches,
                recorder,
                selection=Selection(namespace=namespace),
                backoff=Backoff(first=0.05, limit=1.0),
            )
            for one in (*reconcilers, opchains)
        ]
        tasks = [asyncio.create_task(one.run()) for one in controllers]
        tasks.append(asyncio.create_task(recorder.run()))
        try:
            yield Family(journal)
            assert not any(task.done() for task in tasks), "a controller ended by itself"
        finally:
            await end(*tasks)


class Chains(Graphs):
    """The OPChains of one namespace, with their graphs and everything else in it."""

    def __init__(self, graphs: Graphs) -> None:
        super().__init__(graphs.api, graphs.namespace, graphs.as_operator)
        self.graphs = graphs
        self._path = f"{API}/namespaces/{self.namespace}/opchains"

    def make_secrets(self, chain: str = "chain") -> None:
        """Everything that a valid chain refers to."""
        for secret in chains.secrets(chain):
            self.make("secrets", secret)

    def make_chain(self, double: ChainDouble, name: str = "chain", **changes: Any) -> None:  # noqa: ANN401 -- a merge patch of its spec
        """An OPChain that settles on the double."""
        made = chains.opchain(name, **{"l1": {"rpcUrl": double.l1}, **changes})
        answer = self.api.create(self._path, made)
        assert answer.code == 201, answer.message

    def chain_phase(self, name: str = "chain") -> str:
        return str(self.status(name).get("phase", ""))

    def component(self, component: str, name: str = "chain") -> Object:
        found: Object = self.status(name).get("componentStatus", {}).get(component, {})
        return found
