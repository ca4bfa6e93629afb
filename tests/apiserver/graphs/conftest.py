"""Graphs on a real API server: the real controller under the operator's account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import evaluators
from clusters import Api
from graphs import Engine, Graphs, Start, grant, running
from pequod.controllers.platform.identity import IdentityRules
from pequod.controllers.platform.limits import NamespaceLimits
from pequod.graph.probes import Cel
from pequod.kube.kubeconfig import own_access


@pytest.fixture(scope="session", autouse=True)
def the_evaluator_is_built() -> None:
    evaluators.version()


@pytest.fixture
def graphs(api: Api, namespace: str, as_operator: Api) -> Graphs:
    """The graphs of the test's namespace, with an account that may do everything in it."""
    grant(api, namespace)
    return Graphs(api, namespace, as_operator)


@pytest.fixture
def engine(operator_account: Path, namespace: str) -> Start:
    """Runs the controller of the test's namespace."""

    @asynccontextmanager
    async def start(
        *,
        identity: IdentityRules | None = None,
        limits: NamespaceLimits | None = None,
        abandon_after: float = 600.0,
        cel: Cel | None = None,
    ) -> AsyncIterator[Engine]:
        async with running(
            own_access(operator_account),
            namespace,
            identity=identity or IdentityRules(),
            limits=limits or NamespaceLimits(),
            abandon_after=abandon_after,
            cel=cel,
        ) as engine:
            yield engine

    return start
