"""Accounts for tests, and moving ether between them on the L1.

The keys are known to everybody: geth's developer, and the first two accounts of the mnemonic that
every Ethereum toolkit tests with.
"""

import asyncio
from dataclasses import dataclass, field

from opstack import jsonrpc
from opstack.chainkit import chainkit
from opstack.programs import OpStackPrograms

ETHER = 10**18
PATIENCE = 60.0
BETWEEN_LOOKS = 0.2


@dataclass(frozen=True, slots=True)
class Account:
    """An account and what signs for it."""

    address: str
    key: str = field(repr=False)
    """64 hexadecimal digits, without 0x."""


DEVELOPER = Account(
    "0x71562b71999873DB5b286dF957af199Ec94617F7",
    "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291",
)
"""Owns nearly everything on the L1; geth signs for it, so no key is needed to spend."""
BATCHER = Account(
    "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
)
PROPOSER = Account(
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
)


async def balance(l1_url: str, address: str) -> int:
    """What an account has, in wei."""
    return int(await jsonrpc.call(l1_url, "eth_getBalance", address, "latest"), 16)


async def fund(l1_url: str, address: str, wei: int) -> None:
    """Send ether from the developer to an account, and wait until it is there."""
    transfer = {"from": DEVELOPER.address, "to": address, "value": hex(wei)}
    sent = await jsonrpc.call(l1_url, "eth_sendTransaction", transfer)
    async with asyncio.timeout(PATIENCE):
        while await jsonrpc.call(l1_url, "eth_getTransactionReceipt", sent) is None:
            await asyncio.sleep(BETWEEN_LOOKS)


async def drain(l1_url: str, programs: OpStackPrograms, account: Account) -> None:
    """Take everything from an account, also from one that a program is spending from."""
    await chainkit(programs, "drain", l1_url, DEVELOPER.address, key=account.key)
