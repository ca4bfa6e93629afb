"""What can go wrong with a request: actions for the rules of a `FaultProxy`."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

from faultproxy import Action, Call, Edit, Exchange


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


async def stall(exchange: Exchange) -> web.StreamResponse:
    """Never answer: the client loses its patience, and the API server never hears of it."""
    exchange.note(0)
    await asyncio.Event().wait()
    raise AssertionError("nobody ends this but the client")


async def commit_then_stall(exchange: Exchange) -> web.StreamResponse:
    """Let the API server do it, and never say so."""
    async with exchange.forwarded():
        await asyncio.Event().wait()
    raise AssertionError("nobody ends this but the client")


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


class Feed:
    """The events of streams, in somebody's hands: dropped, doubled, late, made up."""

    def __init__(self) -> None:
        self.edit: Callable[[bytes], list[bytes]] = lambda line: [line]
        """What becomes of an event of the API server's."""
        self.lag: Callable[[], float] = lambda: 0.0
        """Seconds for which an event is on its way; later ones do not overtake it."""
        self._queues: set[asyncio.Queue[tuple[float, bytes] | None]] = set()

    def act(self, exchange: Exchange) -> Awaitable[web.StreamResponse]:
        return exchange.relay(self._edited)

    def inject(self, line: bytes) -> None:
        """Send an event in every stream that is open."""
        for queue in self._queues:
            queue.put_nowait((0.0, line))

    async def _edited(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
        clock = asyncio.get_running_loop().time
        reader = asyncio.create_task(self._read(lines, queue), name="feed")
        self._queues.add(queue)
        try:
            while (entry := await queue.get()) is not None:
                due, line = entry
                await asyncio.sleep(max(due - clock(), 0.0))
                yield line
        finally:
            self._queues.discard(queue)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read(
        self, lines: AsyncIterator[bytes], queue: asyncio.Queue[tuple[float, bytes] | None]
    ) -> None:
        clock = asyncio.get_running_loop().time
        try:
            async for line in lines:
                for one in self.edit(line):
                    queue.put_nowait((clock() + self.lag(), one))
        finally:
            queue.put_nowait(None)


class Snapshot:
    """Lists as they once were, for a server that lags behind."""

    def __init__(self) -> None:
        self._lists: dict[tuple[str, str], list[bytes]] = {}

    def take(self, path: str, selector: str, listed: dict[str, Any]) -> None:
        """Keep a list of all namespaces, as the API server answers it now."""
        kind = listed["kind"].removesuffix("List")
        version = listed["metadata"]["resourceVersion"]
        known = {"apiVersion": listed["apiVersion"], "kind": kind}
        end = {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
        events = [{"type": "ADDED", "object": {**known, **item}} for item in listed["items"]]
        events.append({"type": "BOOKMARK", "object": {**known, "metadata": end}})
        self._lists[path, selector] = [json.dumps(event).encode() + b"\n" for event in events]

    def has(self, call: Call) -> bool:
        """Whether a request asks for a list that is kept."""
        return call.lists and self._place(call) in self._lists

    def follows(self, call: Call) -> bool:
        """Whether a request goes on where such a list ends."""
        return call.follows and self._place(call) in self._lists

    async def serve(self, exchange: Exchange) -> web.StreamResponse:
        exchange.note(200)
        onward = await exchange.begin({"Content-Type": "application/json"})
        for line in self._lists[self._place(exchange.call)]:
            await onward.write(line)
        await onward.write_eof()
        return onward

    @staticmethod
    def _place(call: Call) -> tuple[str, str]:
        return call.path, call.query.get("labelSelector", "")
