"""A real git server over HTTPS, in this process: `git http-backend` behind TLS.

It answers as `git.test`, a name that only `Names` knows. It writes down what is asked, and can be
told to misbehave.
"""

import asyncio
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from socket import AF_INET, AddressFamily

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from doubles.gitrepo import Repository
from listening import Served, server_tls
from pequod.dev.pki import Authority

HOST = "git.test"
Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class Names(AbstractResolver):
    """A name server with one host; it notes how often it was asked."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers or ("127.0.0.1",))
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AF_INET
    ) -> list[ResolveResult]:
        """The next answer; the last one again and again."""
        self.asked.append(host)
        if host != HOST:
            raise OSError(0, "no such host")
        number = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host, host=number, port=port, family=family or AF_INET, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    service: str
    authorization: str
    body: bytes

    @property
    def fetches(self) -> bool:
        return b"command=fetch" in self.body


@dataclass
class GitServer:
    """The server, and the folder with its repositories."""

    root: Path
    authority: Authority = field(default_factory=Authority)
    journal: list[Asked] = field(default_factory=list)
    password: tuple[str, str] | None = None
    behaviour: Behaviour | None = None
    port: int = 0

    def repository(self, name: str = "app", *, algorithm: str = "sha1") -> Repository:
        """Make a repository, or find it again."""
        return Repository(self.root / f"{name}.git", algorithm=algorithm)

    def url(self, name: str = "app") -> str:
        return f"https://{HOST}:{self.port}/{name}.git"

    @property
    def fetches(self) -> list[Asked]:
        return [one for one in self.journal if one.fetches]

    async def start(self) -> None:
        self._over = asyncio.Event()
        tls = server_tls(self.authority, HOST, "127.0.0.1")
        self._served = Served(self._answer, tls=tls, largest=2**26)
        self.port = await self._served.start()

    async def stop(self) -> None:
        self._over.set()
        await self._served.stop()

    async def stall(self, _request: web.Request) -> None:
        """A behaviour: say nothing until the server ends."""
        await self._over.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.journal.append(
            Asked(
                method=request.method,
                path=request.path,
                service=request.query.get("service", request.path.rpartition("/")[2]),
                authorization=request.headers.get("Authorization", ""),
                body=body,
            )
        )
        if self.behaviour is not None:
            answer = await self.behaviour(request)
            if answer is not None:
                return answer
        if self.password is not None and not self._knows(request):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        status, headers, content = await self.backend(request)
        return web.Response(status=status, headers=headers, body=content)

    def _knows(self, request: web.Request) -> bool:
        assert self.password is not None
        basic = b64encode(":".join(self.password).encode()).decode()
        return request.headers.get("Authorization") == f"Basic {basic}"

    async def backend(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        """What git itself answers."""
        body = await request.read()
        process = await asyncio.create_subprocess_exec(
            *("git", "http-backend"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_PROJECT_ROOT": str(self.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": request.method,
                "PATH_INFO": request.path,
                "QUERY_STRING": request.query_string,
                "CONTENT_TYPE": request.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
            },
        )
        output, _ = await process.communicate(body)
        head, _, content = output.partition(b"\r\n\r\n")
        pairs = (line.partition(": ") for line in head.decode().splitlines())
        headers = {name: value for name, _, value in pairs}
        status = int(headers.pop("Status", "200").split()[0])
        return status, headers, content
