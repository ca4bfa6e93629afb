"""Calls to a chain's nodes, as any client makes them."""

from typing import Any

import aiohttp

TIMEOUT = 60.0


class RpcError(Exception):
    """A node answered that it will not."""


async def call(url: str, method: str, *parameters: object) -> Any:  # noqa: ANN401 -- it is JSON
    """The result of one call."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    limit = aiohttp.ClientTimeout(total=TIMEOUT)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,  # noqa: TID251 -- it is no API server
        session.post(url, json=request) as response,
    ):
        answer = await response.json(content_type=None)
    if error := answer.get("error"):
        raise RpcError(f"{method}: {error['message']}")
    return answer["result"]
