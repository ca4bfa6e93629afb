"""Connections to the clusters that objects describe: one for each, shared by all who use it."""

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from pequod.base.tasks import Background
from pequod.kube.auth import Access
from pequod.kube.client import Client
from pequod.kube.objects import Key
from pequod.kube.transport import Fence, Limits, Transport

LIMITS = Limits(connect=3.0, largest=16 * 2**20)
"""Another cluster may be slow or hostile, and is one of many."""


@dataclass(frozen=True, slots=True)
class _Connection:
    version: str
    client: Client


class Clusters:
    """The clusters other than our own, by the keys of the objects that describe them."""

    def __init__(
        self, *, fence: Fence | None, resolver: Callable[[], aiohttp.abc.AbstractResolver]
    ) -> None:
        self._fence = fence
        self._resolver = resolver
        self._connections: dict[Key, _Connection] = {}
        self._confirmed: dict[Key, Client] = {}
        """The connections that are known to lead to the cluster that was registered."""
        self._known: dict[Key, Client] = {}
        """Those that somebody was told of."""
        self._listeners: list[Callable[[Key], None]] = []
        self._background = Background()

    def known(self, key: Key, version: str) -> Client | None:
        """The connection of a cluster, if it was made from this version of its credentials."""
        connection = self._connections.get(key)
        return connection.client if connection and connection.version == version else None

    def connect(self, key: Key, version: str, access: Access) -> Client:
        """A connection with new credentials; the one before it is closed."""
        self.drop(key)
        transport = Transport(
            access, name="remote", limits=LIMITS, fence=self._fence, resolver=self._resolver()
        )
        client = Client(transport)
        self._connections[key] = _Connection(version, client)
        return client

    def confirm(self, key: Key) -> None:
        """The cluster at the end of a connection is the one that it is meant to be."""
        connection = self._connections.get(key)
        if connection is None or self._confirmed.get(key) is connection.client:
            return
        self._confirmed[key] = connection.client
        if self._known.get(key) is not connection.client:
            self._known[key] = connection.client
            for tell in self._listeners:
                tell(key)

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Be told when a cluster can be used through another connection than before."""
        self._listeners.append(listener)

    def doubt(self, key: Key) -> None:
        """Whether the right cluster is at the end of a connection is not known any more."""
        self._confirmed.pop(key, None)

    def confirmed(self, key: Key) -> Client | None:
        """The connection of a cluster that objects may be written to."""
        return self._confirmed.get(key)

    def drop(self, key: Key) -> None:
        """Close a connection that nobody may use any more."""
        self._confirmed.pop(key, None)
        self._known.pop(key, None)
        connection = self._connections.pop(key, None)
        if connection is not None:
            closing = connection.client.transport.close()
            self._background.start(closing, name="close connection")

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            await connection.client.transport.close()
        self._connections.clear()
        self._confirmed.clear()
        await self._background.close()

    def drop_all(self) -> None:
        """Close every connection: somebody else uses them from now on."""
        for key in tuple(self._connections):
            self.drop(key)
