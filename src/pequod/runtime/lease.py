"""The one thing that replicas share: a Lease, read and replaced as a whole."""

from typing import Protocol

import msgspec

from pequod.kube.client import Client
from pequod.kube.errors import NotFoundError
from pequod.kube.kinds import LEASES


class Term(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Who leads, and for how long."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """A term as it is stored, with the version that a change must name."""

    version: str
    term: Term


class LeaseStore(Protocol):
    """Where the Lease is."""

    async def read(self) -> Lease | None:
        """The Lease; None when there is none."""

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        """Put a term in the place of the Lease that we know, or of none.

        Raises ConflictError when that is not, or no longer, what is stored, and NotFoundError when
        nothing is.
        """


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: Term = Term()


class ApiLeaseStore:
    """A Lease of `coordination.k8s.io`."""

    def __init__(self, client: Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    async def read(self) -> Lease | None:
        """The Lease as it is now."""
        try:
            found = await self._client.get(
                LEASES, self._name, namespace=self._namespace, type=_Object
            )
        except NotFoundError:
            return None
        return Lease(found.metadata.resource_version, found.spec)

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        """Create the Lease, or replace exactly the one that we know."""
        metadata = {"name": self._name, "namespace": self._namespace}
        if over is not None:
            metadata["resourceVersion"] = over.version
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": msgspec.to_builtins(term),
        }
        send = self._client.create if over is None else self._client.replace
        stored = msgspec.convert(await send(LEASES, body), _Object)
        return Lease(stored.metadata.resource_version, stored.spec)

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"
