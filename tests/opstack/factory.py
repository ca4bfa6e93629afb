"""What a proposer needs on the L1: Optimism's dispute game factory."""

from opstack import jsonrpc
from opstack.chainkit import chainkit
from opstack.programs import OpStackPrograms
from opstack.wallet import DEVELOPER

_GAME_COUNT = "0x4d1975b4"
"""The selector of `gameCount()`."""


async def deploy_factory(l1_url: str, programs: OpStackPrograms) -> str:
    """Put a factory for games of type 0 without a bond on an L1: its address."""
    return await chainkit(programs, "deploy-factory", l1_url, key=DEVELOPER.key)


async def proposals(l1_url: str, factory: str) -> int:
    """How many outputs have been proposed."""
    question = {"to": factory, "data": _GAME_COUNT}
    return int(await jsonrpc.call(l1_url, "eth_call", question, "latest"), 16)
