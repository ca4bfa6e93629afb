"""Which networks a process of somebody else's choosing may not connect to: a rule as a list.

The Go worker looks names up itself and compares what it dials with this list. It is an
`AddressRule` in other words; a test compares both.
"""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from pequod.kube.addresses import METADATA, NAT64, THIS_HOST, AddressRule

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_IPV4 = (
    THIS_HOST,
    *map(IPv4Network, ("169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")),
    *(network for network in METADATA if isinstance(network, IPv4Network)),
)
_LOW = IPv6Network("::/8")
"""Reserved, but for what stands for an IPv4 address and the loopback address."""
_IPV6 = (
    *(network for network in METADATA if isinstance(network, IPv6Network)),
    *map(
        IPv6Network,
        (
            "100::/8",
            "200::/7",
            "400::/6",
            "800::/5",
            "1000::/4",
            "4000::/3",
            "6000::/3",
            "8000::/3",
            "a000::/3",
            "c000::/3",
            "e000::/4",
            "f000::/5",
            "f800::/6",
            "fe00::/9",
            "fe80::/10",
            "ff00::/8",
            # Teredo: the IPv4 address is at the end, where no prefix can name it.
            "2001::/32",
        ),
    ),
)


def refused_networks(rule: AddressRule) -> tuple[str, ...]:
    """The networks that a rule refuses, IPv4 addresses inside of IPv6 ones included."""
    ipv4 = _IPV4 if rule.allow_local else (*_IPV4, _LOOPBACK[0])
    low = list(_LOW.address_exclude(NAT64))
    if rule.allow_local:
        low = list(_without(low, _LOOPBACK[1]))
    ipv6 = (*_IPV6, *low, *(six for four in ipv4 for six in _embedded(four)))
    return tuple(map(str, (*collapse_addresses(ipv4), *collapse_addresses(ipv6))))


def _without(networks: Iterable[IPv6Network], excluded: IPv6Network) -> Iterator[IPv6Network]:
    for network in networks:
        if excluded.subnet_of(network):
            yield from network.address_exclude(excluded)
        else:
            yield network


def _embedded(network: IPv4Network) -> Iterator[IPv6Network]:
    """The IPv6 networks whose packets end up in an IPv4 one: NAT64 and 6to4."""
    address, length = int(network.network_address), network.prefixlen
    yield IPv6Network((int(NAT64.network_address) | address, 96 + length))
    yield IPv6Network((0x2002 << 112 | address << 80, 16 + length))
