"""Names become addresses here, once: git connects to one that was checked, and asks nobody else.

A check of the name alone would be void, since the answer to the next question may be another.
"""

import asyncio
import socket
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver

from pequod.kube.addresses import AddressRefusedError, AddressRule, CheckedResolver
from pequod.sources.errors import RefusedError, UnavailableError
from pequod.sources.git.remote import Remote

_PATIENCE = 10.0


async def addresses(
    remote: Remote, rule: AddressRule, inner: AbstractResolver | None = None
) -> tuple[str, ...]:
    """The addresses of a host that may be connected to; at least one."""
    try:
        why = rule.refuse(ip_address(remote.host))
    except ValueError:
        return await _looked_up(remote, CheckedResolver(rule, inner))
    if why is not None:
        raise _refused(remote, f"is {why}")
    return (remote.host,)


async def _looked_up(remote: Remote, resolver: CheckedResolver) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await resolver.resolve(remote.host, remote.port, socket.AF_UNSPEC)
    except AddressRefusedError as error:
        raise _refused(remote, "has no address that other people may send us to") from error
    except TimeoutError:
        raise _unknown(remote, f"was not looked up within {_PATIENCE:g} seconds") from None
    except OSError as error:
        raise _unknown(remote, f"cannot be looked up: {error.strerror}") from error
    return tuple(dict.fromkeys(one["host"] for one in found))


def _refused(remote: Remote, problem: str) -> RefusedError:
    return RefusedError(
        remote.url,
        step="address",
        problem=f"the host {remote.host} {problem}",
        next_step="use a repository that is on a server of its own",
    )


def _unknown(remote: Remote, problem: str) -> UnavailableError:
    return UnavailableError(
        remote.url,
        step="address",
        problem=f"the host {remote.host} {problem}",
        next_step="correct the host, or see whether the name server answers",
    )
