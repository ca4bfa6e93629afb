"""Looking at chains: often enough, not too often, and each without waiting for another."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

import chains
from doubles.chain import ChainDouble, Mood, chain_double
from pequod.controllers.rollup.chronicle import Chronicle, Target
from pequod.controllers.rollup.observers import AT_ONCE, Observers, Pace
from pequod.jsonrpc import client
from pequod.jsonrpc.client import JsonRpc
from pequod.jsonrpc.errors import RefusedError, UnansweredError
from pequod.kube.addresses import AddressRule
from pequod.kube.objects import Key
from virtualtime import virtual_time

PACE = Pace(look=10.0, accounts=60.0, tell=15.0)
ONE, OTHER = Key("rollups", "one"), Key("rollups", "other")
HASH = chains.rollup()["genesis"]["l2"]["hash"]
TARGET = Target(
    l1="l1",
    l1_chain_id=1337,
    geth="geth",
    engine="engine",
    node="node",
    jwt=chains.JWT,
    signers={"batcher": chains.BATCHER},
)


class World(JsonRpc):
    """Servers on virtual time: each takes a while, and says what a chain would say."""

    def __init__(self) -> None:
        super().__init__(AddressRule())
        self.takes: dict[str, float] = {}
        """Seconds that a server takes to answer; without an end for one that hangs."""
        self.fails: dict[str, Callable[[], Exception]] = {}
        self.asked: list[tuple[str, str]] = []
        self.busy: Counter[str] = Counter()
        self.busiest = 0
        self.unsafe, self.safe, self.nonce, self.chain_id = 0, 0, 0, 1337
        self.makes_blocks = True

    async def call(
        self,
        url: str,
        method: str,
        parameters: Sequence[object] = (),  # noqa: ARG002 -- nobody cares
        *,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 -- the same
    ) -> Any:  # noqa: ANN401 -- as it is declared
        self.asked.append((url, method))
        self.busy[url] += 1
        self.busiest = max(self.busiest, self.busy.total())
        try:
            await asyncio.sleep(self.takes.get(url, 0.01))
        finally:
            self.busy[url] -= 1
        if url in self.fails:
            error = self.fails[url]()
            raise error
        return self.answer(method)

    def answer(self, method: str) -> object:
        if method == "optimism_syncStatus" and self.makes_blocks:
            self.unsafe += 1
        heads = {"unsafe_l2": self.unsafe, "safe_l2": self.safe, "finalized_l2": 0}
        return {
            "eth_chainId": hex(self.chain_id),
            "eth_gasPrice": hex(10**9),
            "eth_getBalance": hex(10**18),
            "eth_getTransactionCount": hex(self.nonce),
            "eth_blockNumber": hex(self.unsafe),
            "eth_syncing": False,
            "eth_getBlockByNumber": {"hash": HASH},
            "optimism_syncStatus": {name: {"number": height} for name, height in heads.items()},
            "engine_exchangeCapabilities": [],
        }[method]

    def times(self, method: str) -> int:
        return sum(1 for _, one in self.asked if one == method)

    def forget(self) -> None:
        self.asked.clear()


def looking() -> list[str]:
    """Everybody who looks at a chain at the moment."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("Observers.")]


@asynccontextmanager
async def observing(world: JsonRpc, pace: Pace = PACE) -> AsyncIterator[Observers]:
    observers = Observers(world, pace)
    try:
        yield observers
    finally:
        await observers.close()
        assert looking() == []


@virtual_time
async def test_everything_about_a_chain_is_seen() -> None:
    world = World()
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(5)
        world.safe, world.nonce = 3, 1
        await asyncio.sleep(100)
    assert seen.height is not None
    assert seen.height > 1
    assert seen.first_block == HASH
    assert seen.progress.safe.height == 3
    assert seen.progress.unsafe.moved_at is not None
    assert seen.l1_chain_id == 1337
    assert (seen.payers["batcher"].funds.balance, seen.payers["batcher"].nonce) == (10**18, 1)
    assert seen.payers["batcher"].sent_at is not None
    assert not seen.geth.trouble + seen.node.trouble + seen.l1.trouble


@virtual_time
async def test_a_chain_is_watched_once() -> None:
    world = World()
    async with observing(world) as observers:
        seen = {id(observers.watch(ONE, TARGET)) for _ in range(10)}
        await asyncio.sleep(0.1)
        assert len(seen) == 1
        assert world.times("optimism_syncStatus") == 1


@virtual_time
async def test_a_settled_chain_is_looked_at_at_its_pace() -> None:
    world = World()
    async with observing(world) as observers:
        observers.watch(ONE, TARGET)
        observers.settle(ONE, settled=True)
        await asyncio.sleep(5)
        world.forget()
        await asyncio.sleep(600)
        assert 50 <= world.times("optimism_syncStatus") <= 70
        assert 8 <= world.times("eth_getBalance") <= 11
        assert world.times("eth_getBlockByNumber") == 0
        assert world.times("eth_chainId") == 0


@virtual_time
async def test_a_chain_that_is_about_to_change_is_looked_at_more_often() -> None:
    world = World()
    async with observing(world) as observers:
        observers.watch(ONE, TARGET)
        await asyncio.sleep(600)
        assert world.times("optimism_syncStatus") > 250
        assert world.times("eth_getBalance") <= 11, "accounts may cost something"


@virtual_time
async def test_a_chain_that_begins_to_change_is_looked_at_at_once() -> None:
    world = World()
    async with observing(world) as observers:
        observers.watch(ONE, TARGET)
        observers.settle(ONE, settled=True)
        await asyncio.sleep(5)
        world.forget()
        observers.settle(ONE, settled=False)
        await asyncio.sleep(0.5)
        assert world.times("optimism_syncStatus") == 1


@virtual_time
async def test_a_server_that_hangs_keeps_only_its_own_chain_waiting() -> None:
    world = World()
    world.takes = dict.fromkeys(["silent-geth", "silent-node", "silent-l1"], float(10**9))
    async with observing(world) as observers:
        silent = replace(TARGET, l1="silent-l1", geth="silent-geth", node="silent-node")
        observers.watch(OTHER, silent)
        await asyncio.sleep(1)
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(60)
        assert seen.progress.unsafe.moves(asyncio.get_running_loop().time(), 5)


@virtual_time
async def test_servers_of_a_chain_do_not_wait_for_each_other() -> None:
    world = World()
    world.takes = {"l1": 4.0, "geth": 4.0}
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(1)
        assert seen.node.at is not None
        assert seen.geth.at is None


@virtual_time
async def test_no_more_chains_are_looked_at_at_once_than_may_be() -> None:
    world = World()
    world.takes = {"node": 3.0}
    async with observing(world) as observers:
        keys = [Key("rollups", f"chain-{number}") for number in range(5 * AT_ONCE)]
        seen = [observers.watch(key, Target(node="node")) for key in keys]
        await asyncio.sleep(60)
        assert world.busiest == AT_ONCE
        assert all(one.node.at is not None for one in seen), "everybody has a turn"


@virtual_time
async def test_a_chain_that_is_gone_is_not_asked_any_more() -> None:
    world = World()
    woken: list[Key] = []
    async with observing(world) as observers:
        observers.wake = woken.append
        observers.watch(ONE, TARGET)
        observers.watch(OTHER, Target(node="other"))
        await asyncio.sleep(30)
        observers.forget(ONE)
        observers.forget(ONE)
        observers.forget(Key("rollups", "nobody"))
        observers.settle(ONE, settled=True)
        world.forget()
        woken.clear()
        await asyncio.sleep(60)
        assert {url for url, _ in world.asked} == {"other"}
        assert {*woken} == {OTHER}


@virtual_time
async def test_a_chain_that_is_gone_in_the_middle_of_a_question_is_left() -> None:
    world = World()
    world.takes = {"node": 1000.0}
    async with observing(world) as observers:
        observers.watch(ONE, Target(node="node"))
        await asyncio.sleep(1)
        observers.forget(ONE)
        await asyncio.sleep(1)
        assert world.busy.total() == 0


@virtual_time
async def test_a_chain_that_comes_back_is_unknown() -> None:
    world = World()
    async with observing(world) as observers:
        before = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        observers.forget(ONE)
        after = observers.watch(ONE, TARGET)
        assert after is not before
        assert after.progress.unsafe.height is None


@virtual_time
async def test_why_a_server_does_not_answer_is_known_until_it_does() -> None:
    world = World()
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(5)
        answered = seen.node.at
        world.fails = {"node": lambda: UnansweredError("node did not answer")}
        await asyncio.sleep(30)
        assert seen.node.trouble == "node did not answer"
        assert answered is not None
        assert seen.node.at is not None
        assert seen.node.at < answered + 5
        assert not seen.geth.trouble
        world.fails = {}
        await asyncio.sleep(5)
        assert not seen.node.trouble


@virtual_time
async def test_whatever_goes_wrong_is_told_and_survived() -> None:
    world = World()
    with capture_logs() as logs:
        async with observing(world) as observers:
            world.fails = {"geth": lambda: ValueError("bad"), "node": lambda: KeyError("bad")}
            seen = observers.watch(ONE, TARGET)
            await asyncio.sleep(30)
            world.fails = {}
            await asyncio.sleep(30)
            assert seen.geth.at is not None
            assert seen.node.at is not None
    assert {one["event"] for one in logs} == {"looking at a chain failed"}


@virtual_time
async def test_what_goes_wrong_leaves_no_question_behind() -> None:
    """The other servers of the chain are still being asked when one makes a look fail."""
    world = World()
    world.fails, world.takes = {"geth": lambda: ValueError("bad")}, {"node": 1000.0}
    with capture_logs():
        async with observing(world) as observers:
            observers.watch(ONE, TARGET)
            await asyncio.sleep(60)
            assert world.busy["node"] <= 1


@virtual_time
async def test_a_wrong_l1_is_not_asked_for_accounts() -> None:
    world = World()
    world.chain_id = 1
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        assert (seen.l1_chain_id, seen.payers) == (1, {})
        assert world.times("eth_getBalance") == 0
        world.chain_id = 1337
        await asyncio.sleep(30)
        assert seen.l1_chain_id == 1337
        assert [*seen.payers] == ["batcher"]


@virtual_time
async def test_another_l1_is_asked_anew() -> None:
    world = World()
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        world.forget()
        assert observers.watch(ONE, replace(TARGET, l1="elsewhere")) is seen
        assert seen.l1_chain_id is None
        await asyncio.sleep(1)
        assert ("elsewhere", "eth_chainId") in world.asked
        assert ("elsewhere", "eth_getBalance") in world.asked
        assert seen.progress.unsafe.moved_at is not None, "the chain is the same"


@virtual_time
async def test_what_another_account_held_is_forgotten() -> None:
    world = World()
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        before = seen.payers["batcher"]
        observers.watch(ONE, replace(TARGET, signers={"batcher": chains.STRANGER}))
        await asyncio.sleep(1)
        assert seen.payers["batcher"] is not before


def knows(seen: Chronicle) -> bool:
    return seen.knows_jwt is not False


@virtual_time
async def test_the_jwt_is_tried_only_while_the_chain_stands_still() -> None:
    world = World()
    world.makes_blocks = False
    world.fails = {"engine": lambda: RefusedError("engine answers 401", 401)}
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        assert not knows(seen)
        assert seen.geth.at is not None, "it has answered all the same"
        world.makes_blocks = True
        await asyncio.sleep(10)
        assert knows(seen)
        world.forget()
        await asyncio.sleep(60)
        assert world.times("engine_exchangeCapabilities") == 0


@virtual_time
async def test_what_is_known_of_the_jwt_holds_until_it_is_known_anew() -> None:
    """Somebody may read it at any time, also while the engine is being asked."""
    world = World()
    world.makes_blocks, world.takes = False, {"engine": 3.0}
    world.fails = {"engine": lambda: RefusedError("engine answers 401", 401)}
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(10)
        for _ in range(60):
            await asyncio.sleep(0.5)
            assert not knows(seen)


@virtual_time
async def test_an_engine_that_we_cannot_reach_says_nothing_about_op_geth() -> None:
    """Its port may be for op-node only, as a network policy would have it."""
    world = World()
    world.makes_blocks = False
    world.fails = {"engine": lambda: UnansweredError("engine did not answer")}
    async with observing(world) as observers:
        seen = observers.watch(ONE, TARGET)
        await asyncio.sleep(30)
        assert seen.geth.trouble == ""
        assert seen.geth.at is not None


@virtual_time
async def test_news_is_told_at_once_and_heights_now_and_then() -> None:
    world = World()
    told: list[float] = []
    async with observing(world) as observers:
        observers.wake = lambda _: told.append(asyncio.get_running_loop().time())
        observers.watch(ONE, TARGET)
        observers.settle(ONE, settled=True)
        await asyncio.sleep(60)
        told.clear()
        await asyncio.sleep(600)
        assert 25 <= len(told) <= 41, "every second look or so"
        told.clear()
        world.fails = {"node": lambda: UnansweredError("gone")}
        await asyncio.sleep(12)
        assert told


@virtual_time
async def test_nobody_looks_after_the_end() -> None:
    world = World()
    observers = Observers(world, PACE)
    for number in range(100):
        observers.watch(Key("rollups", f"chain-{number}"), TARGET)
    await asyncio.sleep(7)
    observers.forget(Key("rollups", "chain-1"))
    await observers.close()
    assert looking() == []
    await Observers(world, PACE).close()


@asynccontextmanager
async def real(pace: Pace, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Observers]:
    """Observers that ask servers on this machine."""
    monkeypatch.setattr(client, "TIMEOUT", 0.4)
    rpc = JsonRpc(AddressRule(allow_local=True))
    try:
        async with observing(rpc, pace) as observers:
            yield observers
    finally:
        await rpc.close()


def target(double: ChainDouble) -> Target:
    place = f"{double.url}/rollups"
    return replace(
        TARGET,
        l1=double.l1,
        geth=f"{place}/chain-geth/8545",
        engine=f"{place}/chain-geth/8551",
        node=f"{place}/chain-node/8547",
    )


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def blocks_seen(seen: Chronicle) -> int:
    return seen.progress.unsafe.height or 0


async def test_a_real_server_that_hangs_keeps_only_its_own_chain_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pace = Pace.every(0.1)
    async with (
        chain_double() as fine,
        chain_double() as silent,
        real(pace, monkeypatch) as watching,
    ):
        silent.moods.l1 = silent.moods.geth = silent.moods.node = "hangs"
        lost = watching.watch(OTHER, target(silent))
        seen = watching.watch(ONE, target(fine))
        begun = asyncio.get_running_loop().time()
        await until(lambda: blocks_seen(seen) >= 20)
        assert asyncio.get_running_loop().time() - begun < 20 * 0.4, "no look took a timeout"
        await until(lambda: bool(lost.node.trouble and lost.geth.trouble and lost.l1.trouble))
        assert not seen.node.trouble + seen.geth.trouble + seen.l1.trouble


MOODS: tuple[Mood, ...] = (
    *("garbage", "broken", "endless", "denies", "redirects", "lies", "hangs"),
)


async def test_a_real_chain_recovers_from_every_mood(monkeypatch: pytest.MonkeyPatch) -> None:
    async with chain_double() as double, real(Pace.every(0.05), monkeypatch) as watching:
        seen = watching.watch(ONE, target(double))
        for mood in MOODS:
            double.moods.node = mood
            await until(lambda: bool(seen.node.trouble))
            double.moods.node = "fine"
            await until(lambda: not seen.node.trouble)
