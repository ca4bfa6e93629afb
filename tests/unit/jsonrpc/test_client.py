"""Calls to servers of other people: an answer or a reason, soon, and never more than that."""

import asyncio
import gzip
import os
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from doubles.chain import Mood, chain_double
from listening import serving
from pequod.jsonrpc import client
from pequod.jsonrpc.client import LARGEST_ANSWER, JsonRpc
from pequod.jsonrpc.errors import (
    AnsweredError,
    GarbageError,
    RefusedError,
    RpcError,
    UnansweredError,
)
from pequod.kube.addresses import AddressRule

SOON = 0.4
"""Seconds that a call may take in these tests."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEYS = ("k3y-of-user", "k3y-in-path", "k3y-in-query", "k3y-in-fragment")
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": "0x539"}


@dataclass
class Server:
    """A server on this machine, and what it was asked."""

    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    connections: set[asyncio.BaseTransport] = field(default_factory=set)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def with_keys(self) -> str:
        """Its URL as providers hand it out: with keys wherever a URL has room for them."""
        user, path, query, fragment = KEYS
        place = f"127.0.0.1:{self.port}/v3/{path}"
        return f"http://name:{user}@{place}?apikey={query}#{fragment}"


@asynccontextmanager
async def served(answer: Handler) -> AsyncIterator[Server]:
    server = Server()

    async def handle(request: web.Request) -> web.StreamResponse:
        server.requests.append(request)
        if request.transport is not None:
            server.connections.add(request.transport)
        return await answer(request)

    async with serving(handle) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


def says(body: bytes = b"", status: int = 200, header: tuple[str, str] = ("X", "")) -> Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers=[header])

    return answer


async def hangs(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
async def rpc(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JsonRpc]:
    """A caller that may reach this machine."""
    monkeypatch.setattr(client, "TIMEOUT", SOON)
    made = JsonRpc(AddressRule(allow_local=True))
    yield made
    await made.close()


@pytest.fixture
async def stranger(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JsonRpc]:
    """A caller that may not, as in a cluster."""
    monkeypatch.setattr(client, "TIMEOUT", SOON)
    made = JsonRpc(AddressRule())
    yield made
    await made.close()


async def test_a_call_has_the_result_of_the_method(rpc: JsonRpc) -> None:
    async with chain_double(chain_id=1337) as double:
        assert await rpc.call(double.l1, "eth_chainId") == hex(1337)
        assert await rpc.call(double.l1, "eth_getBalance", ("0x0", "latest")) == hex(100 * 10**18)
        assert double.asked == [("l1", "eth_chainId"), ("l1", "eth_getBalance")]


async def test_a_result_may_be_null(rpc: JsonRpc) -> None:
    async with served(says(b'{"jsonrpc":"2.0","id":1,"result":null}')) as server:
        assert await rpc.call(server.url, "eth_getBlockByNumber") is None


async def test_parameters_and_headers_arrive(rpc: JsonRpc) -> None:
    seen: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((await request.json(), request.headers["Authorization"]))
        return web.json_response(ANSWER)

    async with served(answer) as server:
        await rpc.call(server.url, "m", ("0x0", False), headers={"Authorization": "Bearer token"})
    body = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": ["0x0", False]}
    assert seen == [(body, "Bearer token")]


async def test_a_server_that_packs_its_answers_is_understood(rpc: JsonRpc) -> None:
    """As op-geth and op-node do for everybody who says that he can unpack."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.json_response(ANSWER)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            response.enable_compression(web.ContentCoding.gzip)
        return response

    async with served(answer) as server:
        assert await rpc.call(server.url, "eth_chainId") == "0x539"


async def test_an_answer_that_is_packed_all_the_same_is_not_unpacked(rpc: JsonRpc) -> None:
    bomb = gzip.compress(b" " * (64 << 20), 1)
    async with served(says(bomb, header=("Content-Encoding", "gzip"))) as server:
        with pytest.raises(GarbageError):
            await rpc.call(server.url, "eth_chainId")


@pytest.mark.parametrize(
    ("mood", "kind", "words"),
    [
        ("hangs", UnansweredError, "did not answer eth_chainId within 0.4 s"),
        ("garbage", GarbageError, "is not JSON-RPC"),
        ("broken", RefusedError, "answers 503"),
        ("endless", GarbageError, "is larger than 1 MiB"),
        ("denies", RefusedError, "answers 401"),
        ("redirects", RefusedError, "redirects, which is not followed"),
    ],
)
async def test_a_server_that_misbehaves_is_a_reason(
    rpc: JsonRpc, mood: Mood, kind: type[RpcError], words: str
) -> None:
    async with chain_double() as double:
        double.moods.l1 = mood
        with pytest.raises(kind, match=words):
            await rpc.call(double.l1, "eth_chainId")
        double.moods.l1 = "fine"
        assert await rpc.call(double.l1, "eth_chainId") == "0x539"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_nobody_is_sent_elsewhere(rpc: JsonRpc, status: int) -> None:
    async with served(says(b"{}")) as elsewhere:
        redirect = says(status=status, header=("Location", elsewhere.url))
        async with served(redirect) as server:
            with pytest.raises(RefusedError) as caught:
                await rpc.call(server.url, "eth_chainId")
        assert caught.value.status == status
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"1",
        b'"0x1"',
        b"[]",
        b'[{"result":1}]',
        b'{"result":',
        b'{"result":NaN}',
        b'{"error":"no"}',
        b'{"error":{"code":"x","message":"no"}}',
        b'{"error":{"code":1,"message":null}}',
        b'{"result":"\xff\xfe"}',
        b"[" * 200_000,
        b'{"result":' + b"[" * 200_000,
        b"{}",
        b'{"jsonrpc":"2.0","id":1}',
    ],
    ids=lambda body: body[:24].decode("ascii", "replace") or "nothing",
)
async def test_an_answer_that_makes_no_sense_is_garbage(rpc: JsonRpc, body: bytes) -> None:
    async with served(says(body)) as server:
        with pytest.raises(RpcError) as caught:
            await rpc.call(server.url, "eth_chainId")
        assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"<html>"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503])
async def test_an_http_error_is_told_by_its_status(rpc: JsonRpc, status: int, body: bytes) -> None:
    async with served(says(body, status=status)) as server:
        with pytest.raises(RefusedError, match=f"answers {status}") as caught:
            await rpc.call(server.url, "eth_chainId")
        assert caught.value.status == status


@pytest.mark.parametrize("status", [401, 429, 502])
async def test_an_http_error_in_json_is_no_result(rpc: JsonRpc, status: int) -> None:
    async with served(says(b'{"message":"too many requests"}', status=status)) as server:
        with pytest.raises(RefusedError, match=f"answers {status}"):
            await rpc.call(server.url, "eth_chainId")


@pytest.mark.parametrize("status", [200, 400, 429, 500])
async def test_what_a_server_says_is_wrong_is_told(rpc: JsonRpc, status: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
    async with served(says(body, status=status)) as server:
        with pytest.raises(AnsweredError, match="refuses eth_x: no such method") as caught:
            await rpc.call(server.url, "eth_x")
        assert caught.value.code == -32601


async def test_long_words_of_a_server_are_cut(rpc: JsonRpc) -> None:
    async with served(says(b'{"error":{"message":"%s"}}' % (b"x" * 100_000))) as server:
        with pytest.raises(AnsweredError) as caught:
            await rpc.call(server.url, "eth_x")
        assert len(str(caught.value)) < 300


async def test_a_server_that_answers_drop_by_drop_is_left(rpc: JsonRpc) -> None:
    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b" ")
            await asyncio.sleep(SOON / 20)
        return response

    async with served(drips) as server:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(UnansweredError):
            await rpc.call(server.url, "eth_chainId")
        assert asyncio.get_running_loop().time() - begun < 4 * SOON


async def test_no_more_is_read_than_an_answer_may_have(rpc: JsonRpc) -> None:
    sent = 0

    async def pours(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(4096):
            await response.write(b" " * (1 << 16))
            sent += 1 << 16
        return response

    async with served(pours) as server:
        with pytest.raises(GarbageError, match="larger than 1 MiB"):
            await rpc.call(server.url, "eth_chainId")
        await asyncio.sleep(0)
        assert sent < 32 * LARGEST_ANSWER, "what the sockets hold, and no more"


async def test_a_server_that_speaks_no_http_is_a_reason(rpc: JsonRpc) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnansweredError, match=r"127\.0\.0\.1 cannot be reached"):
            await rpc.call(f"http://127.0.0.1:{port}", "eth_chainId")


async def test_nobody_at_home_is_a_reason(rpc: JsonRpc) -> None:
    with pytest.raises(UnansweredError, match="cannot be reached: Connection refused"):
        await rpc.call("http://127.0.0.1:9", "eth_chainId")


@pytest.mark.parametrize(
    "url",
    ["", "http://", "http://:80", "l1.example", "ftp://l1.example", "http://[::1", "http://a b"],
)
async def test_what_is_no_url_is_a_reason(rpc: JsonRpc, url: str) -> None:
    with pytest.raises(RpcError):
        await rpc.call(url, "eth_chainId")


LOCAL = [
    *("127.0.0.1", "127.1", "127.0.0.2", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1."),
    *("localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"),
    *("[2002:7f00:1::]",),
]
NEVER = [
    *("169.254.169.254", "[::ffff:169.254.169.254]", "2852039166", "[fe80::1]", "100.100.100.200"),
    *("0.0.0.0", "0", "[::]", "168.63.129.16", "[fd00:ec2::254]", "224.0.0.1", "255.255.255.255"),
]


@pytest.mark.parametrize("host", [*LOCAL, *NEVER])
async def test_an_address_that_is_not_allowed_is_not_asked(stranger: JsonRpc, host: str) -> None:
    async with served(says(b'{"result":1}')) as server:
        with pytest.raises(UnansweredError, match=r"not allowed|cannot be reached"):
            await stranger.call(f"http://{host}:{server.port}/", "eth_chainId")
        assert server.requests == []


@pytest.mark.parametrize("host", NEVER)
async def test_some_addresses_are_never_asked(rpc: JsonRpc, host: str) -> None:
    async with served(says(b'{"result":1}')) as server:
        with pytest.raises(UnansweredError, match=r"not allowed|InvalidUrl"):
            await rpc.call(f"http://{host}:{server.port}/", "eth_chainId")
        assert server.requests == []


async def test_a_name_is_refused_by_what_it_stands_for(
    stranger: JsonRpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(_host: str, port: int, **_options: object) -> list[tuple[object, ...]]:
        address = ("127.0.0.1", port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with served(says(b'{"result":1}')) as server:
        with pytest.raises(UnansweredError, match=r"l1\.example stands for an address that is not"):
            await stranger.call(f"http://l1.example:{server.port}/", "eth_chainId")
        assert server.requests == []


async def test_a_name_that_nobody_knows_is_told_as_such(
    rpc: JsonRpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_place: object, **_options: object) -> list[tuple[object, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(UnansweredError) as caught:
        await rpc.call("http://l1.example/", "eth_chainId")
    assert str(caught.value) == "l1.example cannot be reached: Name or service not known"


async def test_no_proxy_of_the_environment_is_asked(
    rpc: JsonRpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        served(says(b'{"result":"proxy"}')) as proxy,
        served(says(b'{"result":1}')) as server,
    ):
        monkeypatch.setitem(os.environ, "HTTP_PROXY", proxy.url)
        assert await rpc.call(server.url, "eth_chainId") == 1
        assert proxy.requests == []


def told(error: BaseException | None) -> str:
    """Everything that anybody could print of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) if error else ""


@pytest.mark.parametrize(
    "answer",
    [
        hangs,
        says(b"<html>"),
        says(status=302, header=("Location", f"http://other/{KEYS[1]}")),
        *(says(status=status) for status in (400, 401, 403, 404, 429, 500)),
        says(b" " * (LARGEST_ANSWER + 1)),
        says(b'{"error":{"code":-32000,"message":"no"}}'),
    ],
)
async def test_a_key_in_a_url_is_never_told(rpc: JsonRpc, answer: Handler) -> None:
    async with served(answer) as server:
        with pytest.raises(RpcError) as caught:
            await rpc.call(server.with_keys, "eth_chainId")
        assert [key for key in KEYS if key in told(caught.value)] == []


@pytest.mark.parametrize(
    "url",
    [
        "http://name:{}@127.0.0.1:9/v3/{}?apikey={}#{}",
        "http://name:{}@169.254.169.254/v3/{}?apikey={}#{}",
        "http://name:{}@2852039166/v3/{}?apikey={}#{}",
        "http://name:{}@[::1/v3/{}?apikey={}#{}",
        "http://name:{}@/v3/{}?apikey={}#{}",
        "http://name:{}@l1.invalid/v3/{}?apikey={}#{}",
        "ftp://name:{}@127.0.0.1/v3/{}?apikey={}#{}",
    ],
)
async def test_a_key_in_a_url_that_leads_nowhere_is_not_told_either(rpc: JsonRpc, url: str) -> None:
    with pytest.raises(RpcError) as caught:
        await rpc.call(url.format(*KEYS), "eth_chainId")
    assert [key for key in KEYS if key in f"{caught.value} {caught.value!r}"] == []


async def test_a_key_that_a_server_repeats_is_not_told(rpc: JsonRpc) -> None:
    async def repeats(request: web.Request) -> web.StreamResponse:
        words = f"no project at {request.path_qs}"
        return web.json_response({"error": {"code": -32000, "message": words}})

    async with served(repeats) as server:
        with pytest.raises(AnsweredError, match="no project at") as caught:
            await rpc.call(server.with_keys, "eth_chainId")
        assert [key for key in KEYS if key in str(caught.value)] == []


async def test_what_is_no_key_is_told_as_it_was_said(rpc: JsonRpc) -> None:
    words = "the method eth_x does not exist on v1"
    body = b'{"error":{"code":-32601,"message":"%s"}}' % words.encode()
    async with served(says(body)) as server:
        with pytest.raises(AnsweredError, match=words):
            await rpc.call(f"{server.url}/eth/v1/", "eth_x")


async def test_a_password_in_a_url_is_for_its_server(rpc: JsonRpc) -> None:
    async with served(says(b'{"result":1}')) as server:
        assert await rpc.call(server.with_keys, "eth_chainId") == 1
        (request,) = server.requests
        assert request.headers["Authorization"].startswith("Basic ")
        assert request.query == {"apikey": KEYS[2]}


async def test_no_cookie_is_kept(rpc: JsonRpc) -> None:
    async with served(says(b'{"result":1}', header=("Set-Cookie", "a=b; Path=/"))) as server:
        await rpc.call(server.url, "eth_chainId")
        await rpc.call(server.url, "eth_chainId")
        assert ["Cookie" in one.headers for one in server.requests] == [False, False]


async def test_silent_servers_do_not_keep_others_from_being_asked(
    rpc: JsonRpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as may be asked at once: 32 chains, each with three servers."""
    monkeypatch.setattr(client, "TIMEOUT", patience := 5 * SOON)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(listen, "0.0.0.0", 0)
    port, enough = silent.sockets[0].getsockname()[1], False

    async def ask(number: int) -> None:
        while not enough:
            with suppress(UnansweredError):
                await rpc.call(f"http://127.0.1.{number}:{port}", "eth_chainId")

    async with silent, served(says(b'{"result":1}')) as server:
        asking = [asyncio.create_task(ask(number)) for number in range(1, 97)]
        try:
            for _ in range(4):
                await asyncio.sleep(patience / 3)
                assert await rpc.call(server.url, "eth_chainId") == 1
        finally:
            enough = True
            await asyncio.gather(*asking)
            await rpc.close()


async def test_connections_end_with_their_owner(rpc: JsonRpc) -> None:
    async with served(says(b'{"result":1}')) as server:
        await rpc.call(server.url, "eth_chainId")
        (connection,) = server.connections
        assert not connection.is_closing()
        await rpc.close()
        async with asyncio.timeout(SOON):
            while not connection.is_closing():
                await asyncio.sleep(0.01)


async def test_whoever_called_nobody_has_nothing_to_close() -> None:
    await JsonRpc(AddressRule()).close()
