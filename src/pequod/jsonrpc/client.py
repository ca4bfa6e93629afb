"""Calls to JSON-RPC servers over HTTP."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from pequod.jsonrpc.errors import (
    AnsweredError,
    GarbageError,
    RefusedError,
    UnansweredError,
)
from pequod.kube.addresses import AddressRefusedError, AddressRule, CheckedResolver
from pequod.kube.objects import MISFITS

LARGEST_ANSWER = 1 << 20
TIMEOUT = 5.0
_CONNECT = 3.0
_PER_HOST = 32
_REDIRECTS = range(300, 400)
_BAD = 400
_DENIED = frozenset({401, 403})
_SHOWN = 200
_KEY = 8
"""How long a part of a path is at the least that may be a key."""


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Answer(msgspec.Struct, frozen=True):
    result: Any = msgspec.UNSET
    error: _Error | None = None


_answers = msgspec.json.Decoder(_Answer)
_encoder = msgspec.json.Encoder()


class JsonRpc:
    """A caller of many servers, each of which may be slow, silent or a liar."""

    def __init__(self, rule: AddressRule) -> None:
        self._rule = rule
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self,
        url: str,
        method: str,
        parameters: Sequence[object] = (),
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 -- what a method returns is up to it
        """The result of a call; raises RpcError, which tells no more of the URL than its host."""
        host = self._checked(url)
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._posted(url, host, method, parameters, headers or {})
        except TimeoutError as error:
            raise UnansweredError(f"{host} did not answer {method} within {TIMEOUT:g} s") from error
        except AddressRefusedError as error:
            raise UnansweredError(f"{host} stands for an address that is not allowed") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnansweredError(f"{host} cannot be reached: {_why(error)}") from error
        if answer.error is not None:
            words = _without_keys(answer.error.message, url)[:_SHOWN]
            raise AnsweredError(f"{host} refuses {method}: {words}", answer.error.code)
        return answer.result

    async def _posted(
        self,
        url: str,
        host: str,
        method: str,
        parameters: Sequence[object],
        headers: Mapping[str, str],
    ) -> _Answer:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": [*parameters]}
        session = self._opened()
        own = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        async with session.post(
            url, data=_encoder.encode(body), headers=own | dict(headers), allow_redirects=False
        ) as response:
            if response.status in _REDIRECTS:
                raise RefusedError(f"{host} redirects, which is not followed", response.status)
            content = await _bounded(response, host)
            if response.status in _DENIED:
                raise RefusedError(f"{host} answers {response.status}", response.status)
        return _decoded(content, host, response.status)

    def _checked(self, url: str) -> str:
        """The host of a URL; raises when it is an address that nobody may send us to."""
        try:
            host = URL(url).host or ""
        except ValueError as error:
            raise UnansweredError("the URL cannot be understood") from error
        try:
            problem = self._rule.refuse(ip_address(host))
        except ValueError:
            return host
        if problem is not None:
            raise UnansweredError(f"{host} is {problem}, which is not allowed")
        return host

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=CheckedResolver(self._rule),
                limit=0,  # As many as are asked at once: a silent one must not keep others waiting.
                limit_per_host=_PER_HOST,
                ttl_dns_cache=10,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        """End every connection."""
        if self._session is not None:
            await self._session.close()


async def _bounded(response: aiohttp.ClientResponse, host: str) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > LARGEST_ANSWER:
            response.close()
            raise GarbageError(f"the answer of {host} is larger than 1 MiB")
    return bytes(content)


def _decoded(content: bytes, host: str, status: int) -> _Answer:
    try:
        answer = _answers.decode(content)
    except MISFITS:
        answer = _Answer()
    if answer.error is not None:
        return answer
    if status >= _BAD:
        raise RefusedError(f"{host} answers {status}", status)
    if answer.result is msgspec.UNSET:
        raise GarbageError(f"the answer of {host} is not JSON-RPC")
    return answer


def _without_keys(text: str, url: str) -> str:
    """What a server says, without the parts of its URL that may be a key."""
    known = URL(url)
    parts = {one for one in (*known.raw_parts, *known.parts) if len(one) >= _KEY}
    parts |= {one for one in (*known.query.values(), known.user, known.password) if one}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "…")
    return text


def _why(error: Exception) -> str:
    """What went wrong, without the address: it may hold a key."""
    if isinstance(error, aiohttp.ClientConnectorError | OSError):
        cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        known = cause.errno is not None and cause.errno > 0
        return os.strerror(cause.errno or 0) if known else cause.strerror or type(cause).__name__
    return type(error).__name__
