"""What the programs of a chain, and L1, are asked; whatever they answer is checked."""

import re
import time
from dataclasses import dataclass
from typing import Any

import jwt

from pequod.controllers.rollup.progress import Heads
from pequod.jsonrpc.client import JsonRpc
from pequod.jsonrpc.errors import AnsweredError, GarbageError, RefusedError

_HIGHEST = 2**63 - 1
_LARGEST = 2**256 - 1
_UNAUTHORIZED = 401
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Account:
    """What L1 says of an account."""

    balance: int
    """In wei."""
    nonce: int
    """How many transactions it has sent."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What op-geth says of itself."""

    height: int
    syncing: bool


async def execution(rpc: JsonRpc, url: str) -> Execution:
    """How far op-geth is."""
    height = _quantity(await rpc.call(url, "eth_blockNumber"), "eth_blockNumber", _HIGHEST)
    return Execution(height, syncing=await rpc.call(url, "eth_syncing") is not False)


async def first_block(rpc: JsonRpc, url: str) -> str:
    """The hash of the first block that op-geth has."""
    method = "eth_getBlockByNumber"
    found = _member(await rpc.call(url, method, ("0x0", False)), "hash", method)
    if not isinstance(found, str) or not _HASH.fullmatch(found):
        raise GarbageError(f"{method} gives no hash")
    return found.lower()


async def heads(rpc: JsonRpc, url: str) -> Heads:
    """Where op-node stands."""
    method = "optimism_syncStatus"
    status = await rpc.call(url, method)

    def height(name: str) -> int:
        found = _member(_member(status, name, method), "number", method)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _HIGHEST:
            raise GarbageError(f"{method} gives no number for {name}")
        return found

    return Heads(height("unsafe_l2"), height("safe_l2"), height("finalized_l2"))


async def chain_id(rpc: JsonRpc, url: str) -> int:
    """Which chain a server is of."""
    return _quantity(await rpc.call(url, "eth_chainId"), "eth_chainId", _HIGHEST)


async def gas_price(rpc: JsonRpc, url: str) -> int:
    """What gas costs, in wei."""
    return _quantity(await rpc.call(url, "eth_gasPrice"), "eth_gasPrice", _LARGEST)


async def account(rpc: JsonRpc, url: str, address: str) -> Account:
    """What an account holds, and how often it has sent."""
    place = (address, "latest")
    balance = _quantity(await rpc.call(url, "eth_getBalance", place), "eth_getBalance", _LARGEST)
    method = "eth_getTransactionCount"
    nonce = _quantity(await rpc.call(url, method, place), method, _HIGHEST)
    return Account(balance, nonce)


async def engine_knows(rpc: JsonRpc, url: str, secret: str) -> bool:
    """Whether the engine API of op-geth accepts tokens that are made with a secret."""
    token = jwt.encode({"iat": int(time.time())}, bytes.fromhex(secret), algorithm="HS256")
    try:
        await rpc.call(
            url,
            "engine_exchangeCapabilities",
            ([],),
            headers={"Authorization": f"Bearer {token}"},
        )
    except RefusedError as error:
        return error.status != _UNAUTHORIZED
    except AnsweredError:
        return True
    return True


def _quantity(found: object, method: str, largest: int) -> int:
    if isinstance(found, str) and found.startswith("0x") and len(found) <= len(hex(_LARGEST)):
        try:
            value = int(found, 16)
        except ValueError:
            value = -1
        if 0 <= value <= largest:
            return value
    raise GarbageError(f"{method} gives no quantity")


def _member(found: Any, name: str, method: str) -> Any:  # noqa: ANN401 -- whatever was answered
    if not isinstance(found, dict):
        raise GarbageError(f"{method} gives no object")
    return found.get(name)
