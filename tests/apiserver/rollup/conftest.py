"""OPChains on a real API server: the real controllers, simulated pods, a double of the chain."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import chains
from clusters import Api, SharedControlPlane
from doubles.chain import ChainDouble, chain_double
from graphs import Graphs
from pequod.controllers.rollup.observers import Pace
from pequod.kube.kubeconfig import own_access
from rollups import QUICK, Chains, Family, Film, StartFamily, filmed, running


@pytest.fixture
def opchains(api: Api, namespace: str, as_operator: Api) -> Chains:
    """The OPChains of the test's namespace."""
    return Chains(Graphs(api, namespace, as_operator))


@pytest.fixture
async def double() -> AsyncIterator[ChainDouble]:
    """A chain that makes progress."""
    genesis_hash = chains.rollup()["genesis"]["l2"]["hash"]
    async with chain_double(genesis_hash=genesis_hash) as made:
        yield made


@pytest.fixture
def family(operator_account: Path, namespace: str) -> StartFamily:
    """Runs the controllers of the test's namespace."""

    @asynccontextmanager
    async def start(
        double: ChainDouble, *, pace: Pace = QUICK, allow_local: bool = True
    ) -> AsyncIterator[Family]:
        async with running(
            own_access(operator_account), namespace, double, pace=pace, allow_local=allow_local
        ) as started:
            yield started

    return start


@pytest.fixture
async def film(control_plane: SharedControlPlane, namespace: str) -> AsyncIterator[Film]:
    """What happens in the test's namespace, whether or not an operator runs."""
    async with filmed(own_access(control_plane.api.kubeconfig), namespace) as shot:
        yield shot
