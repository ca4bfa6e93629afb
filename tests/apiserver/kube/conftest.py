"""Clients in the event loop of a test: one of their own, and one behind a proxy that fails."""

from collections.abc import AsyncIterator

import pytest

from clusters import Api
from faultproxy import FaultProxy, fault_proxy
from pequod.kube.client import Client
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport
from waiting import connections_closed


@pytest.fixture(autouse=True)
async def no_connection_is_left() -> AsyncIterator[None]:
    """Set up first, so that it looks last: TLS takes a moment to say goodbye."""
    yield
    await connections_closed()


@pytest.fixture
async def client(api: Api) -> AsyncIterator[Client]:
    transport = Transport(own_access(api.kubeconfig))
    yield Client(transport)
    await transport.close()


@pytest.fixture
async def proxy(api: Api) -> AsyncIterator[FaultProxy]:
    async with fault_proxy(own_access(api.kubeconfig)) as running:
        yield running


@pytest.fixture
async def proxied(proxy: FaultProxy) -> AsyncIterator[Client]:
    transport = Transport(proxy.access())
    yield Client(transport)
    await transport.close()
