"""Transforms on a real API server: the real controllers under the operator's account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import evaluators
from clusters import Api, SharedControlPlane
from commandline import Pequod
from graphs import TENANT, Graphs, grant
from pequod.base.backoff import Backoff
from pequod.controllers.platform.identity import IdentityRules
from pequod.kube.kubeconfig import own_access
from pequod.sources.resolver import Reference
from transforms import SOON, Plans, Platform, StartPlatform, Transforms, running


@pytest.fixture(scope="session", autouse=True)
def the_evaluator_is_built() -> None:
    evaluators.version()


@pytest.fixture
def transforms(api: Api, namespace: str, as_operator: Api) -> Transforms:
    """The Transforms of the test's namespace."""
    return Transforms(Graphs(api, namespace, as_operator))


@pytest.fixture
def pequod(control_plane: SharedControlPlane, tmp_path: Path) -> Pequod:
    """The command line, for somebody who may do everything."""
    return Pequod(tmp_path, control_plane.api.kubeconfig)


@pytest.fixture
def tenant(api: Api, namespace: str) -> str:
    """An account that may do everything in its namespace."""
    grant(api, namespace)
    return TENANT


@pytest.fixture
def platform(operator_account: Path, namespace: str, tmp_path: Path) -> StartPlatform:
    """Runs the controllers of the test's namespace."""

    @asynccontextmanager
    async def start(
        *,
        identity: IdentityRules | None = None,
        policies: Reference | None = None,
        plain_http: frozenset[str] = frozenset(),
        backoff: Backoff = SOON,
    ) -> AsyncIterator[Platform]:
        async with running(
            own_access(operator_account),
            namespace,
            tmp_path / "store",
            identity=identity or IdentityRules(),
            policies=policies,
            plain_http=plain_http,
            backoff=backoff,
        ) as started:
            yield started

    return start


@pytest.fixture
def plans(transforms: Transforms) -> Plans:
    return Plans(transforms)
