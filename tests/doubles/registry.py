"""A real registry, and a server in front of it: with TLS, a journal, and bad manners on demand."""

import asyncio
import http.client
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from aiohttp import web

from listening import Served, server_tls
from pequod.dev.pki import Authority

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
_NOT_COPIED = frozenset({"connection", "transfer-encoding", "date", "keep-alive"})


@contextmanager
def running(command: tuple[str, ...], folder: Path) -> Iterator[int]:
    """The program, on a port of this machine; it ends with us."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    configuration = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(folder / "content")},
            "delete": {"enabled": True},
        },
        "http": {"addr": f"127.0.0.1:{port}", "relativeurls": True},
    }
    (folder / "registry.yaml").write_text(yaml.safe_dump(configuration))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ("setpriv", "--pdeathsig", "KILL", *command, "serve", str(folder / "registry.yaml")),
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, "the registry has ended"
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.05)
        else:
            return


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    authorization: str


@dataclass
class RegistryServer:
    """What clients speak to; the registry behind it has the content."""

    upstream: int
    tls: bool = True
    authority: Authority = field(default_factory=Authority)
    journal: list[Asked] = field(default_factory=list)
    password: tuple[str, str] | None = None
    token: str = ""
    behaviour: Behaviour | None = None
    port: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._over = asyncio.Event()
        tls = server_tls(self.authority, "localhost", "127.0.0.1") if self.tls else None
        self._served = Served(self._answer, tls=tls, largest=2**28)
        self.port = await self._served.start()

    async def stop(self) -> None:
        self._over.set()
        await self._served.stop()

    async def stall(self, _request: web.Request) -> None:
        """A behaviour: say nothing until the server ends."""
        await self._over.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "")
        self.journal.append(Asked(request.method, request.path, sent))
        if self.behaviour is not None:
            answer = await self.behaviour(request)
            if answer is not None:
                return answer
        if (self.password is not None or self.token) and sent not in self._accepted():
            challenge = {"WWW-Authenticate": 'Basic realm="registry"'}
            return web.Response(status=401, headers=challenge, text=f"not {sent}")
        return await self.forward(request)

    def _accepted(self) -> set[str]:
        basic = b64encode(":".join(self.password or ("", "")).encode()).decode()
        return {f"Basic {basic}", f"Bearer {self.token}"}

    async def forward(self, request: web.Request) -> web.Response:
        """What the registry itself answers."""
        status, headers, content = await asyncio.to_thread(
            _asked, self.upstream, request, await request.read()
        )
        return web.Response(status=status, headers=headers, body=content)


def _asked(port: int, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
    upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        upstream.putrequest(
            request.method, request.path_qs, skip_host=True, skip_accept_encoding=True
        )
        # Some are there several times, as Accept is.
        for name, value in request.headers.items():
            if name.lower() not in _NOT_COPIED | {"authorization", "content-length"}:
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body)
        answer = upstream.getresponse()
        found = {k: v for k, v in answer.getheaders() if k.lower() not in _NOT_COPIED}
        return answer.status, found, answer.read()
    finally:
        upstream.close()
