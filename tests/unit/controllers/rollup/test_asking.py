"""What is asked about a chain: whatever the answer is, it is a value or garbage."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import jwt
import pytest

import chains
from doubles.chain import Mood, chain_double
from pequod.controllers.rollup import asking
from pequod.controllers.rollup.asking import Account, Execution
from pequod.controllers.rollup.progress import Heads
from pequod.jsonrpc import client
from pequod.jsonrpc.client import JsonRpc
from pequod.jsonrpc.errors import AnsweredError, GarbageError, RefusedError, RpcError
from pequod.kube.addresses import AddressRule

URL = "http://server.example"
HASH = "0xb0566a1c43d44b8b6e733dee8f98efcb7c5c48a36d47ba0c4719a36db9478024"
HIGHEST = 2**63 - 1
NO_QUANTITY: list[object] = [
    *(None, 5, True, 1.5, [], {}, {"number": "0x1"}),
    *("", "5", "0x", "0xg", "-0x1", "0x-1", "0x 1", f"0x{'f' * 65}", "0x" + "0" * 100_000),
]
NO_NUMBER: list[object] = [None, "5", "0x5", True, -1, 1.5, [], {}, 2**63, 10**400]


class Said(JsonRpc):
    """A caller that has its answers by the method."""

    def __init__(self, **answers: object) -> None:
        super().__init__(AddressRule())
        self.answers = answers
        self.headers: Mapping[str, str] = {}

    async def call(
        self,
        url: str,  # noqa: ARG002 -- everybody says the same
        method: str,
        parameters: Sequence[object] = (),  # noqa: ARG002 -- the same
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 -- as it is declared
        self.headers = headers or {}
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def rpc(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JsonRpc]:
    monkeypatch.setattr(client, "TIMEOUT", 0.3)
    made = JsonRpc(AddressRule(allow_local=True))
    yield made
    await made.close()


def status(**numbers: object) -> dict[str, object]:
    """What op-node says, with other heads."""
    heads = {"unsafe_l2": 30, "safe_l2": 20, "finalized_l2": 10} | numbers
    return {name: {"hash": HASH, "number": number} for name, number in heads.items()}


async def test_everything_is_asked_of_servers_that_are_well(rpc: JsonRpc) -> None:
    async with chain_double(genesis_hash=HASH, unsafe=30, safe=20, makes_blocks=False) as double:
        geth, node = f"{double.url}/ns/chain-geth/8545", f"{double.url}/ns/chain-node/8547"
        assert await asking.execution(rpc, geth) == Execution(30, syncing=False)
        assert await asking.first_block(rpc, geth) == HASH
        assert await asking.heads(rpc, node) == Heads(unsafe=30, safe=20, finalized=0)
        assert await asking.chain_id(rpc, double.l1) == 1337
        assert await asking.gas_price(rpc, double.l1) == 10**9
        assert await asking.account(rpc, double.l1, chains.BATCHER) == Account(100 * 10**18, 0)
        assert await asking.engine_knows(rpc, f"{double.url}/ns/chain-geth/8551", chains.JWT)


@pytest.mark.parametrize("mood", ["hangs", "garbage", "broken", "endless", "denies", "lies"])
async def test_servers_that_are_not_well_are_a_reason(rpc: JsonRpc, mood: Mood) -> None:
    async with chain_double() as double:
        double.moods.geth = double.moods.node = double.moods.l1 = mood
        for question in (
            asking.execution(rpc, f"{double.url}/ns/chain-geth/8545"),
            asking.heads(rpc, f"{double.url}/ns/chain-node/8547"),
            asking.chain_id(rpc, double.l1),
        ):
            with pytest.raises(RpcError):
                await question


@pytest.mark.parametrize(("text", "number"), [("0x0", 0), ("0x1f", 31), (hex(HIGHEST), HIGHEST)])
async def test_a_quantity_is_a_number(text: str, number: int) -> None:
    assert await asking.chain_id(Said(eth_chainId=text), URL) == number


@pytest.mark.parametrize("answer", [*NO_QUANTITY, hex(HIGHEST + 1)], ids=lambda one: str(one)[:16])
async def test_what_is_no_quantity_is_garbage(answer: object) -> None:
    said = Said(eth_chainId=answer, eth_blockNumber=answer, eth_syncing=False, eth_getBalance="0x0")
    with pytest.raises(GarbageError, match="eth_chainId gives no quantity"):
        await asking.chain_id(said, URL)
    with pytest.raises(GarbageError, match="eth_blockNumber gives no quantity"):
        await asking.execution(said, URL)
    said.answers["eth_getTransactionCount"] = answer
    with pytest.raises(GarbageError, match="eth_getTransactionCount gives no quantity"):
        await asking.account(said, URL, chains.BATCHER)


async def test_an_account_may_hold_any_amount() -> None:
    most = 2**256 - 1
    said = Said(eth_getBalance=hex(most), eth_getTransactionCount="0x1", eth_gasPrice=hex(most))
    assert await asking.account(said, URL, chains.BATCHER) == Account(most, 1)
    assert await asking.gas_price(said, URL) == most


@pytest.mark.parametrize("answer", NO_QUANTITY, ids=lambda one: str(one)[:16])
async def test_what_is_no_amount_is_garbage(answer: object) -> None:
    said = Said(eth_getBalance=answer, eth_getTransactionCount="0x1", eth_gasPrice=answer)
    with pytest.raises(GarbageError, match="eth_getBalance gives no quantity"):
        await asking.account(said, URL, chains.BATCHER)
    with pytest.raises(GarbageError, match="eth_gasPrice gives no quantity"):
        await asking.gas_price(said, URL)


@pytest.mark.parametrize(
    ("answer", "syncing"), [(False, False), ({"currentBlock": "0x1"}, True), (True, True)]
)
async def test_op_geth_syncs_unless_it_says_that_it_does_not(
    answer: object, *, syncing: bool
) -> None:
    said = Said(eth_blockNumber="0x1", eth_syncing=answer)
    assert (await asking.execution(said, URL)).syncing is syncing


@pytest.mark.parametrize("head", ["unsafe_l2", "safe_l2", "finalized_l2"])
@pytest.mark.parametrize("number", NO_NUMBER, ids=lambda one: str(one)[:16])
async def test_a_head_without_a_number_is_garbage(head: str, number: object) -> None:
    said = Said(optimism_syncStatus=status(**{head: number}))
    with pytest.raises(GarbageError, match=f"gives no number for {head}"):
        await asking.heads(said, URL)


@pytest.mark.parametrize("answer", [None, 5, "status", [], {}, {"unsafe_l2": 5}])
async def test_a_status_without_heads_is_garbage(answer: object) -> None:
    with pytest.raises(GarbageError, match="optimism_syncStatus gives no"):
        await asking.heads(Said(optimism_syncStatus=answer), URL)


async def test_the_hash_of_the_first_block_is_in_small_letters() -> None:
    said = Said(eth_getBlockByNumber={"hash": f"0x{HASH[2:].upper()}"})
    assert await asking.first_block(said, URL) == HASH


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 5, [], {}, {"hash": None}, {"hash": 5}, {"hash": ""}, {"hash": "0x12"}),
        *({"hash": "x" * 100_000}, {"hash": f"{HASH}\n"}),
    ],
    ids=lambda one: str(one)[:16],
)
async def test_what_is_no_hash_is_garbage(answer: object) -> None:
    """It is shown to people when it is not the hash of the configuration."""
    with pytest.raises(GarbageError, match="eth_getBlockByNumber gives no"):
        await asking.first_block(Said(eth_getBlockByNumber=answer), URL)


async def test_a_token_is_made_with_the_secret() -> None:
    said = Said(engine_exchangeCapabilities=[])
    assert await asking.engine_knows(said, URL, chains.JWT)
    token = said.headers["Authorization"].removeprefix("Bearer ")
    assert [*jwt.decode(token, bytes.fromhex(chains.JWT), algorithms=["HS256"])] == ["iat"]


async def test_an_engine_that_denies_a_token_does_not_know_it() -> None:
    denied = Said(engine_exchangeCapabilities=RefusedError("server answers 401", 401))
    assert not await asking.engine_knows(denied, URL, chains.JWT)


async def test_an_engine_that_is_not_well_may_know_a_token() -> None:
    broken = Said(engine_exchangeCapabilities=RefusedError("server answers 503", 503))
    assert await asking.engine_knows(broken, URL, chains.JWT)


async def test_an_engine_that_answers_anything_has_taken_the_token() -> None:
    wrong = AnsweredError("server refuses engine_exchangeCapabilities: no such method", -32601)
    assert await asking.engine_knows(Said(engine_exchangeCapabilities=wrong), URL, chains.JWT)
