"""What others may ask about this process: is it alive, can it serve, what does it count?

`/healthz` fails only for what a restart can mend: a watch that does nothing any more, an event
loop that is blocked. An API server that is away is no reason to end. `/readyz` says what is
missing until everything is there.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

Check = Callable[[], Awaitable[str]]
"""How something is, for a person; raises UnhealthyError when it is not well."""

_CHECK_LIMIT = 5.0


class UnhealthyError(Exception):
    """What is wrong, for a person."""


class PortTakenError(Exception):
    """Somebody else listens there."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """From `host:port`, `:port` for every address, `[::1]:port`; ValueError otherwise."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is not an address such as 127.0.0.1:8081 or :8081")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def health_app(live: Mapping[str, Check], ready: Mapping[str, Check]) -> web.Application:
    """The pages that kubelets ask for."""
    app = web.Application()
    app.router.add_get("/healthz", _page(live))
    app.router.add_get("/livez", _page(live))
    app.router.add_get("/readyz", _page(ready))
    return app


def metrics_app() -> web.Application:
    """The page that Prometheus asks for."""

    async def metrics(_request: web.Request) -> web.Response:
        body = generate_latest(REGISTRY)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    return app


def _page(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def page(_request: web.Request) -> web.Response:
        asked = [await _asked(name, check) for name, check in checks.items()]
        text = "".join(f"{line}\n" for _, line in asked)
        return web.Response(text=text, status=200 if all(well for well, _ in asked) else 503)

    return page


async def _asked(name: str, check: Check) -> tuple[bool, str]:
    """Whether something is well, and the line that says so."""
    try:
        async with asyncio.timeout(_CHECK_LIMIT):
            return True, f"[+]{name} {await check()}"
    except UnhealthyError as error:
        return False, f"[-]{name} {error}"
    except TimeoutError:
        return False, f"[-]{name} no answer in {_CHECK_LIMIT:.0f} s"


@asynccontextmanager
async def serving(app: web.Application, address: Address) -> AsyncIterator[Address]:
    """Serve pages inside the block; yields the address, with the port that was chosen for 0."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host or None, address.port, reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            taken = error.errno in {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES}
            raise (PortTakenError(str(address)) if taken else error) from error
        port = runner.addresses[0][1] if runner.addresses else address.port
        yield Address(address.host, port)
    finally:
        await runner.cleanup()
