"""What can go wrong with a request: actions for the rules of a `FaultProxy`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

from aiohttp import web

from faultproxy import Action, Edit, Exchange


def answer(code: int, message: str = "", *, reason: str = "", after: int | None = None) -> Action:
    """Answer with a Status instead of the API server; `after` is the header Retry-After."""

    async def act(exchange: Exchange) -> web.StreamResponse:
        exchange.note(code)
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        headers = {} if after is None else {"Retry-After": str(after)}
        return web.json_response(status, status=code, headers=headers)

    return act


def delayed(seconds: float) -> Action:
    """Pass on, later."""

    async def act(exchange: Exchange) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await exchange.relay()

    return act


async def drop(exchange: Exchange) -> web.StreamResponse:
    """End the connection; the API server never hears of the request."""
    exchange.note(0)
    return exchange.drop()


async def commit_then_drop(exchange: Exchange) -> web.StreamResponse:
    """Let the API server do it, and keep its answer."""
    async with exchange.forwarded() as kept:
        await kept.read()
    return exchange.drop()


def truncated(size: int) -> Action:
    """Announce the whole answer, and end the connection after so many bytes of it."""

    async def act(exchange: Exchange) -> web.StreamResponse:
        async with exchange.forwarded() as whole:
            body = await whole.read()
        onward = await exchange.begin({"Content-Length": str(len(body))})
        await onward.write(body[:size])
        return exchange.drop()

    return act


def with_header(name: str, value: str) -> Action:
    """Pass on, with another value of a header."""

    async def act(exchange: Exchange) -> web.StreamResponse:
        exchange.set_header(name, value)
        return await exchange.relay()

    return act


def edited(edit: Edit) -> Action:
    """Pass on, with the lines of a stream as `edit` has them."""
    return lambda exchange: exchange.relay(edit)


class Gate:
    """Holds back until it is opened: `stall` a whole answer, `hold` the events of a stream."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self._discards = False

    def open(self, *, discard: bool = False) -> None:
        """Let everything through, or end the streams without what was held back."""
        self._discards = discard
        self.opened.set()

    async def stall(self, exchange: Exchange) -> web.StreamResponse:
        await self.opened.wait()
        return await exchange.relay()

    def hold(self, exchange: Exchange) -> Awaitable[web.StreamResponse]:
        return exchange.relay(self._after_opening)

    async def _after_opening(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await self.opened.wait()
        if not self._discards:
            async for line in lines:
                yield line


def skipping(*numbers: int) -> Action:
    """Keep the events of these numbers back, counted from 1."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        number = 0
        async for line in lines:
            number += 1
            if number not in numbers:
                yield line

    return edited(edit)


async def duplicating(exchange: Exchange) -> web.StreamResponse:
    """Send every event twice."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            yield line
            yield line

    return await exchange.relay(edit)


def ending(*, events: int | None = None, seconds: float | None = None) -> Action:
    """End a stream, as an API server does, after so many events or seconds."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        deadline = None if seconds is None else clock() + seconds
        left = events
        while left is None or left > 0:
            try:
                line = await asyncio.wait_for(anext(lines), deadline and deadline - clock())
            except (StopAsyncIteration, TimeoutError):
                return
            yield line
            left = None if left is None else left - 1

    return edited(edit)


def injecting(raw: bytes, *, after: int = 0) -> Action:
    """Send a line of our own after so many events of the API server's."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        number = 0
        if after == 0:
            yield raw + b"\n"
        async for line in lines:
            yield line
            number += 1
            if number == after:
                yield raw + b"\n"

    return edited(edit)


async def cut_in_a_character(exchange: Exchange) -> web.StreamResponse:
    """End a stream within the first character that is more than one byte."""

    async def edit(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            place = next((at for at, byte in enumerate(line) if byte >= 0xC0), None)
            if place is not None:
                yield line[: place + 1]
                return
            yield line

    return await exchange.relay(edit)
