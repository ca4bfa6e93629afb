"""Servers that live in the event loop of a test, and leave nothing open behind."""

import asyncio
import socket
import ssl
import tempfile
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from pequod.dev.pki import Authority


def listener(port: int = 0) -> socket.socket:
    """A socket on the loopback that accepts connections."""
    return socket.create_server(("127.0.0.1", port))


async def accept_no_more(listening: socket.socket) -> None:
    """Let what was accepted become a connection: asyncio leaks what a closed server is handed."""
    if listening.fileno() < 0:
        return
    asyncio.get_running_loop().remove_reader(listening)
    for _ in range(3):
        await asyncio.sleep(0)


async def drop_connections(port: int) -> None:
    """Drop who is still connected to a port: asyncio leaks whoever lets TLS wait for a goodbye."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, BaseSelectorEventLoop)
    for transport in [*loop._transports.values()]:  # type: ignore[attr-defined]
        if transport.get_extra_info("sockname")[1] == port:
            transport.abort()
    await asyncio.sleep(0)


def server_tls(authority: Authority, *names: str) -> ssl.SSLContext:
    """What a server of these names proves itself with."""
    issued = authority.server("server", addresses=[*names])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile() as file:
        file.write(issued.certificate + issued.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class Served:
    """One handler for every request, on a port of the loopback."""

    def __init__(
        self, handler: Handler, *, tls: ssl.SSLContext | None = None, largest: int = 2**20
    ) -> None:
        app = web.Application(client_max_size=largest)
        app.router.add_route("*", "/{path:.*}", handler)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        self._tls = tls
        self._listening = listener()
        self._port = int(self._listening.getsockname()[1])

    async def start(self) -> int:
        """Listen; yields the port."""
        await self._runner.setup()
        await web.SockSite(self._runner, self._listening, ssl_context=self._tls).start()
        return self._port

    async def stop(self) -> None:
        """End every connection; once more does no harm."""
        await accept_no_more(self._listening)
        await self._runner.cleanup()
        await drop_connections(self._port)


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that lives as long as the block."""
    served = Served(handler, tls=tls)
    try:
        yield await served.start()
    finally:
        await served.stop()
