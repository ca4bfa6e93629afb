"""Where the kubeconfigs of other people may lead us: checked when read, and when resolved."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from pequod.api import reasons
from pequod.kube.errors import CredentialsError

Address = IPv4Address | IPv6Address

THIS_HOST = IPv4Network("0.0.0.0/8")
NAT64 = IPv6Network("64:ff9b::/96")
METADATA = (
    IPv4Network("100.100.100.200/32"),  # Alibaba Cloud
    IPv4Network("168.63.129.16/32"),  # Azure
    IPv4Network("192.0.0.192/32"),  # Oracle Cloud
    IPv6Network("fd00:ec2::/32"),  # AWS
    IPv6Network("fd20:ce::254/128"),  # Google Cloud
)
"""Where clouds tell a machine its secrets; not all of them are link-local."""


class AddressRefusedError(CredentialsError):
    """A kubeconfig that leads to where other people may not send us."""

    reason = reasons.ADDRESS_REFUSED


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Which addresses the kubeconfigs of other people may lead to.

    Private networks are fine, since clusters live there; what is only ours to reach is not.
    """

    allow_local: bool = False
    """Whether clusters may be on this machine, as they are in development."""

    def refuse(self, address: Address) -> str | None:
        """What is wrong with an address; None if nothing is."""
        # An address inside an address is where the packets end up.
        address = _embedded(address) or address
        if address.is_loopback:
            return None if self.allow_local else "a loopback address"
        kinds = {
            "an unspecified address": address.is_unspecified or address in THIS_HOST,
            "a link-local address": address.is_link_local,
            "a metadata service": any(address in network for network in METADATA),
            "a multicast address": address.is_multicast,
            "a reserved address": address.is_reserved,
        }
        return next((kind for kind, applies in kinds.items() if applies), None)


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, 6to4, Teredo or NAT64."""
    if isinstance(address, IPv4Address):
        return None
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]


_lookups = ThreadPoolExecutor(max_workers=32, thread_name_prefix="lookup")
"""Names of other people's servers may take forever: nothing of ours waits behind them."""


class _OwnThreads(AbstractResolver):
    """The system's resolver, in threads that nobody else needs."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name, as numbers."""
        lookup = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(_lookups, lookup)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """The threads are shared, and end with the process."""


class CheckedResolver(AbstractResolver):
    """Names become addresses that a rule allows, or none; the connection is made to those.

    A check before would be void: the answer to the next question may be another one.
    """

    def __init__(self, rule: AddressRule, inner: AbstractResolver | None = None) -> None:
        self._rule = rule
        self._inner = inner or _OwnThreads()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The allowed addresses of a name."""
        allowed: list[ResolveResult] = []
        why = "no address"
        for found in await self._inner.resolve(host, port, family):
            problem = self._problem(found["host"])
            if problem is None:
                allowed.append(found)
            else:
                why = problem
        if not allowed:
            raise address_refused(host, f"stands for {why}")
        return allowed

    def _problem(self, address: str) -> str | None:
        try:
            return self._rule.refuse(ip_address(address))
        except ValueError:
            return "something that is not an address"

    async def close(self) -> None:
        """Release what the resolver behind this one holds."""
        await self._inner.close()


def address_refused(host: str, why: str) -> AddressRefusedError:
    """The error that says which server is refused, and why."""
    return AddressRefusedError(
        f"the server {host} {why}, which a kubeconfig of a Cluster may not lead to: "
        "give an address of the cluster itself"
    )
