"""A chain as JSON-RPC shows it: L1, op-geth and op-node in one server, which can also misbehave.

The path says who is asked: `/l1`, or `/<namespace>/<service>/<port>` as the operator's template
has it. Heads move when the test says so, or with every question. One server can stand for several
chains, of which each has a double of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from listening import serving

Mood = Literal["fine", "hangs", "garbage", "broken", "endless", "denies", "redirects", "lies"]
ETHER = 10**18
_ENDLESS = 64 << 20
_SERVICE = 2
"""Which part of a path names the Service."""


@dataclass
class Moods:
    """How each server behaves."""

    l1: Mood = "fine"
    geth: Mood = "fine"
    node: Mood = "fine"
    engine: Mood = "fine"


@dataclass
class ChainDouble:
    """What the servers say."""

    url: str = ""
    chain_id: int = 1337
    genesis_hash: str = f"0x{1:064x}"
    unsafe: int = 0
    safe: int = 0
    finalized: int = 0
    makes_blocks: bool = True
    """Whether every question finds the unsafe head one block further."""
    sends_batches: bool = True
    """Whether the safe head follows."""
    balance: int = 100 * ETHER
    burns: int = 0
    """What an account spends between two questions."""
    nonce: int = 0
    moods: Moods = field(default_factory=Moods)
    asked: list[tuple[str, str]] = field(default_factory=list)
    neighbours: dict[str, "ChainDouble"] = field(default_factory=dict)
    """Other chains by their names, which the same server stands for."""
    l1_path: str = "/l1"

    @property
    def l1(self) -> str:
        return self.url + self.l1_path

    def beside(self, name: str, **state: Any) -> "ChainDouble":  # noqa: ANN401 -- its fields
        """Another chain of that name, behind the same server."""
        known = {"genesis_hash": self.genesis_hash, "l1_path": f"/l1/{name}", **state}
        self.neighbours[name] = made = ChainDouble(url=self.url, **known)
        return made

    def times(self, who: str, method: str) -> int:
        """How often somebody was asked for something."""
        return self.asked.count((who, method))

    @property
    def template(self) -> str:
        """Where the operator finds the programs of a chain."""
        return self.url + "/{namespace}/{service}/{port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        return await self._concerned(request.path).answer_itself(request)

    def _concerned(self, path: str) -> "ChainDouble":
        named = path.removeprefix("/l1/") if path.startswith("/l1/") else _service(path)
        return self.neighbours.get(named, self)

    async def answer_itself(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        who = _who(request.path)
        self.asked.append((who, body["method"]))
        mood: Mood = getattr(self.moods, who)
        if mood != "fine" and (spoilt := await _SPOILT[mood](request)) is not None:
            return spoilt
        result = self._result(body["method"], lies=mood == "lies")
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], **result})

    def _result(self, method: str, *, lies: bool) -> dict[str, Any]:
        answers: dict[str, Callable[[], object]] = {
            "eth_chainId": lambda: hex(self.chain_id),
            "eth_gasPrice": lambda: hex(10**9),
            "eth_getBalance": self._spent,
            "eth_getTransactionCount": lambda: hex(self.nonce),
            "eth_blockNumber": lambda: hex(self.unsafe),
            "eth_syncing": lambda: False,
            "eth_getBlockByNumber": lambda: {"hash": self.genesis_hash},
            "optimism_syncStatus": self._sync_status,
            "engine_exchangeCapabilities": list,
        }
        if method not in answers:
            return {"error": {"code": -32601, "message": f"the method {method} does not exist"}}
        return {"result": {"number": "0x"} if lies else answers[method]()}

    def _spent(self) -> str:
        self.balance = max(self.balance - self.burns, 0)
        return hex(self.balance)

    def _sync_status(self) -> dict[str, object]:
        if self.makes_blocks:
            self.unsafe += 1
            if self.sends_batches:
                self.safe, self.nonce = self.unsafe - 1, self.nonce + 1
        heads = {"unsafe_l2": self.unsafe, "safe_l2": self.safe, "finalized_l2": self.finalized}
        return {name: {"number": number} for name, number in heads.items()}


def _service(path: str) -> str:
    """The chain that a path with the name of a Service is about."""
    parts = path.split("/")
    return parts[2].rpartition("-")[0] if len(parts) > _SERVICE else ""


def _who(path: str) -> str:
    if path.startswith("/l1"):
        return "l1"
    return {"8545": "geth", "8551": "engine", "8547": "node"}[path.rpartition("/")[2]]


async def _hangs(_request: web.Request) -> web.StreamResponse | None:
    await asyncio.Event().wait()
    return None


async def _garbage(_request: web.Request) -> web.StreamResponse | None:
    return web.Response(body=b"<html>\xff\x00 not what you asked for")


async def _broken(_request: web.Request) -> web.StreamResponse | None:
    return web.Response(status=503, text="upstream is gone")


async def _denies(_request: web.Request) -> web.StreamResponse | None:
    return web.Response(status=401, text="signature is invalid")


async def _redirects(_request: web.Request) -> web.StreamResponse | None:
    return web.Response(status=302, headers={"Location": "http://169.254.169.254/"})


async def _endless(request: web.Request) -> web.StreamResponse | None:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        for _ in range(_ENDLESS >> 16):
            await response.write(b" " * (1 << 16))
    except ConnectionError:
        pass
    return response


async def _lies(_request: web.Request) -> web.StreamResponse | None:
    return None


_SPOILT = {
    "hangs": _hangs,
    "garbage": _garbage,
    "broken": _broken,
    "denies": _denies,
    "redirects": _redirects,
    "endless": _endless,
    "lies": _lies,
}


@asynccontextmanager
async def chain_double(**state: Any) -> AsyncIterator[ChainDouble]:  # noqa: ANN401 -- its fields
    """A double on this machine, until the block ends."""
    double = ChainDouble(**state)
    async with serving(double.answer) as port:
        double.url = f"http://127.0.0.1:{port}"
        yield double
