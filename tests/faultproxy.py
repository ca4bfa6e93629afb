"""An HTTP proxy between a client and an API server that fails on demand.

It lives in the event loop of a test. A rule is a match and an action; the first rule that matches
decides, and without one a request is passed on. Watches are passed on line by line: one event is
one line. Everything that was asked is in the journal.
"""

import asyncio
import re
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from listening import accept_no_more, listener
from pequod.kube.auth import Access, Credentials, Endpoint, Fixed, bearer
from pequod.kube.transport import Connector

_NOT_OURS = ("Host", "Connection", "Content-Length", "Transfer-Encoding", "Accept-Encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What somebody asked for, and which code the API server, or a rule, answered with."""

    method: str
    path: str
    query: Mapping[str, str]
    agent: str
    user: str
    """The user in whose name it was asked; empty for the client's own."""
    body: bytes = field(repr=False)
    at: float
    code: int = 0
    """0 when there was no answer at all."""
    answer: bytes = field(default=b"", repr=False)
    """What the API server said; nothing of a watch."""

    @property
    def writes(self) -> bool:
        return self.method not in {"GET", "HEAD"}

    @property
    def watches(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def lists(self) -> bool:
        """Whether it begins a list, by a stream or by a first page."""
        pages = "limit" in self.query and "continue" not in self.query
        return pages or self.query.get("sendInitialEvents") == "true"

    @property
    def follows(self) -> bool:
        """Whether it goes on where a list ended."""
        return self.watches and not self.lists


Match = Callable[[Call], bool]


def calls(method: str = "", path: str = "", **query: str) -> Match:
    """Requests by their method, a regular expression on the path, and parts of the query."""

    def matches(call: Call) -> bool:
        return (
            (not method or call.method == method)
            and re.search(path, call.path) is not None
            and all(re.search(value, call.query.get(key, "")) for key, value in query.items())
        )

    return matches


def lists(call: Call) -> bool:
    """Lists, by stream or by page."""
    return call.lists


def follows(call: Call) -> bool:
    """Watches that go on after a list."""
    return call.follows


class Exchange:
    """One request on its way, and everything that an action can do with it."""

    def __init__(self, proxy: "FaultProxy", request: web.BaseRequest, call: Call) -> None:
        self.call = call
        self._proxy = proxy
        self._request = request
        self._headers = CIMultiDict(request.headers)

    def set_header(self, name: str, value: str) -> None:
        self._headers[name] = value

    def note(self, code: int, answer: bytes = b"") -> None:
        self._proxy.journal.append(replace(self.call, code=code, answer=answer))

    @asynccontextmanager
    async def forwarded(self) -> AsyncIterator[aiohttp.ClientResponse]:
        """What the API server answers."""
        async with self._proxy.upstream(self._request, self._headers, self.call.body) as answer:
            follows = self.call.watches and answer.status == 200
            self.note(answer.status, b"" if follows else await answer.read())
            yield answer

    def drop(self) -> web.StreamResponse:
        """End the connection without another byte."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return web.Response()

    async def begin(self, headers: Mapping[str, str]) -> web.StreamResponse:
        """Begin an answer whose body follows."""
        onward = web.StreamResponse(headers=headers)
        await onward.prepare(self._request)
        return onward

    async def relay(self, edit: "Edit | None" = None) -> web.StreamResponse:
        """Pass the answer on; when it is a stream of events, line by line through `edit`."""
        async with self.forwarded() as answer:
            headers = _kept(answer.headers)
            if not self.call.watches or answer.status != 200:
                body = await answer.read()
                return web.Response(status=answer.status, headers=headers, body=body)
            onward = await self.begin(headers)
            lines = _lines(answer)
            async for line in edit(lines) if edit else lines:
                await onward.write(line)
            await onward.write_eof()
            return onward


Action = Callable[[Exchange], Awaitable[web.StreamResponse]]
Edit = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]


@dataclass(eq=False, slots=True)
class Rule:
    """What happens to the requests that match: from the `first` one on, so many `times`."""

    match: Match
    action: Action
    first: int
    times: int | None
    _rules: list["Rule"]
    seen: int = 0

    def applies(self, call: Call) -> bool:
        if not self.match(call):
            return False
        self.seen += 1
        return self.first <= self.seen and (
            self.times is None or self.seen < self.first + self.times
        )

    def remove(self) -> None:
        if self in self._rules:
            self._rules.remove(self)


class FaultProxy:
    """The proxy itself; `fault_proxy` starts and ends one."""

    def __init__(self, access: Access) -> None:
        self.journal: list[Call] = []
        self.in_flight = 0
        self.most_in_flight = 0
        """The most requests, watches apart, that ever were under way at the same time."""
        self.watching = 0
        """The watches that are under way."""
        self.port = 0
        self._access = access
        self._token = secrets.token_hex(16)
        self._rules: list[Rule] = []
        self._runner: web.ServerRunner | None = None
        self._listening: socket.socket | None = None
        self._connectors: list[Connector] = []
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # noqa: TID251

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def access(self, credentials: Credentials | None = None) -> Access:
        """How to reach the API server by way of the proxy: as its administrator, or oneself."""
        endpoint = Endpoint(server=self.server)
        return Access(endpoint=endpoint, credentials=credentials or Fixed())

    def kubeconfig(self, path: Path, token: str = "") -> Path:
        """Write the same as a kubeconfig, for another process."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": self.server}}],
            "users": [{"name": "proxy", "user": {"token": token or self._token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)
        return path

    def rule(
        self, match: Match, action: Action, *, first: int = 1, times: int | None = None
    ) -> Rule:
        """Let an action happen to the requests that match."""
        made = Rule(match, action, first, times, self._rules)
        self._rules.append(made)
        return made

    def asked(self, match: Match) -> list[Call]:
        """What the journal holds of a kind of requests."""
        return [call for call in self.journal if match(call)]

    async def start(self) -> None:
        """Listen; after a `stop`, on the same port as before."""
        server = web.Server(self._answer, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await self._runner.setup()
        self._listening = listener(self.port)
        await web.SockSite(self._runner, self._listening).start()
        self.port = self._listening.getsockname()[1]

    async def stop(self) -> None:
        """End every connection, and refuse new ones."""
        if self._runner is not None and self._listening is not None:
            await accept_no_more(self._listening)
            await self._runner.cleanup()
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        for connector in self._connectors:
            await connector.abort()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        call = Call(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            agent=request.headers.get("User-Agent", ""),
            user=request.headers.get("Impersonate-User", ""),
            body=await request.read(),
            at=asyncio.get_running_loop().time(),
        )
        exchange = Exchange(self, request, call)
        rule = next((rule for rule in tuple(self._rules) if rule.applies(call)), None)
        self.in_flight += not call.watches
        self.watching += call.watches
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await (rule.action(exchange) if rule else exchange.relay())
        except (aiohttp.ClientError, OSError):
            return exchange.drop()
        finally:
            self.in_flight -= not call.watches
            self.watching -= call.watches

    @asynccontextmanager
    async def upstream(
        self, request: web.BaseRequest, headers: CIMultiDict[str], body: bytes
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask the API server: with the client's own token where it has one, else as ourselves."""
        itself = headers.get("Authorization") not in {None, bearer(self._token)}
        identity = await self._access.credentials.current()
        onward = CIMultiDict(_kept(headers))
        if not itself:
            onward.popall("Authorization", None)
            if identity.authorization is not None:
                onward["Authorization"] = identity.authorization
        if itself not in self._sessions:
            tls = self._access.endpoint.tls(None if itself else identity.certificate)
            connector = Connector(ssl=tls, limit=0)
            self._connectors.append(connector)
            self._sessions[itself] = aiohttp.ClientSession(  # noqa: TID251 -- it is a proxy
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            )
        url = URL(self._access.endpoint.server + request.raw_path, encoded=True)
        asked = self._sessions[itself].request(
            request.method, url, headers=onward, data=body or None, allow_redirects=False
        )
        async with asked as answer:
            try:
                yield answer
            finally:
                # A polite end takes longer than the event loop of a test may live.
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()


def _kept(headers: Mapping[str, str] | CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of one side that are meant for the other."""
    kept = CIMultiDict(headers)
    for name in _NOT_OURS:
        kept.popall(name, None)
    return kept


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


@asynccontextmanager
async def fault_proxy(access: Access) -> AsyncIterator[FaultProxy]:
    """A proxy in front of an API server, for the length of a block."""
    proxy = FaultProxy(access)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
