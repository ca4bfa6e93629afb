"""Where the operator finds the programs of a chain."""

from dataclasses import dataclass

import msgspec

from pequod.controllers.rollup.components.chain import ENGINE, HTTP, NODE_RPC, Component
from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key

SERVICES = Kind("", "v1", "Service", "services")
TEMPLATE = "http://{service}.{namespace}.svc:{port}"
"""By name, which an operator inside the cluster can resolve."""
_ADDRESS = "{address}"


class _ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    cluster_ip: str = msgspec.field(default="", name="clusterIP")


class _Service(msgspec.Struct, frozen=True):
    spec: _ServiceSpec = _ServiceSpec()


@dataclass(frozen=True, slots=True)
class Urls:
    """Where a chain's programs are asked; empty for what is not there."""

    geth: str = ""
    engine: str = ""
    node: str = ""


class Places:
    """Makes URLs from a template: by the name of a Service, or by its address."""

    def __init__(self, client: Client, template: str = TEMPLATE) -> None:
        self._client = client
        self._template = template
        self._addresses: dict[Key, str] = {}

    async def urls(self, key: Key, *, geth: bool, node: bool) -> Urls:
        """Where the programs of a chain are asked."""
        return Urls(
            geth=await self._url(key, "geth", HTTP) if geth else "",
            engine=await self._url(key, "geth", ENGINE) if geth else "",
            node=await self._url(key, "node", NODE_RPC) if node else "",
        )

    def forget(self, key: Key) -> None:
        """A chain is gone, or its Services may have other addresses."""
        for component in ("geth", "node"):
            self._addresses.pop(Key(key.namespace, f"{key.name}-{component}"), None)

    async def _url(self, key: Key, component: Component, port: int) -> str:
        service = f"{key.name}-{component}"
        address = ""
        if _ADDRESS in self._template:
            address = await self._address(Key(key.namespace, service))
            if not address:
                return ""
        return self._template.format(
            service=service, namespace=key.namespace, port=port, address=address
        )

    async def _address(self, key: Key) -> str:
        known = self._addresses.get(key)
        if known:
            return known
        try:
            found = await self._client.get(
                SERVICES, key.name, namespace=key.namespace, type=_Service
            )
        except NotFoundError:
            return ""
        self._addresses[key] = found.spec.cluster_ip
        return found.spec.cluster_ip
