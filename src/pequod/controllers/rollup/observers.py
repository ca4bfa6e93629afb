"""Look at chains all the time: a task for each, so that a silent server keeps nobody waiting."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

import structlog

from pequod.base.backoff import spread
from pequod.base.tasks import Background, end
from pequod.controllers.rollup import asking
from pequod.controllers.rollup.chronicle import Chronicle, Payer, Seen, Target
from pequod.controllers.rollup.components.senders import Sender
from pequod.jsonrpc.client import JsonRpc
from pequod.jsonrpc.errors import RpcError
from pequod.kube.objects import Key

AT_ONCE = 32
"""Chains that are looked at at the same time."""
LONGEST_LOOK = 10.0
"""Seconds for all questions to one server: it holds up others who wait for their turn."""
FIRST_LOOK = 2.0
"""Seconds for which a pass waits for the first look at a chain, once."""
_FAST = 5
"""How much more often a chain is looked at whose state is about to change."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often chains are looked at, in seconds."""

    look: float = 10.0
    """Between two looks at a chain."""
    accounts: float = 60.0
    """Between two looks at accounts on L1, which may cost something."""
    tell: float = 15.0
    """Between two reports of nothing but heights."""

    @classmethod
    def every(cls, look: float) -> Self:
        """Everything in proportion to how often a chain is looked at."""
        return cls(look=look, accounts=6 * look, tell=1.5 * look)


@dataclass(slots=True)
class _Watch:
    target: Target
    chronicle: Chronicle
    task: asyncio.Task[None] | None = None
    again: asyncio.Event = field(default_factory=asyncio.Event)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    accounts_at: float | None = None
    told: tuple[object, ...] = ()
    told_at: float = 0.0
    settled: bool = False


class Observers:
    """Everybody who looks at a chain."""

    def __init__(self, rpc: JsonRpc, pace: Pace) -> None:
        self._rpc = rpc
        self._pace = pace
        self._watches: dict[Key, _Watch] = {}
        self._background = Background()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.wake: Callable[[Key], None] = lambda _: None

    def watch(self, key: Key, target: Target) -> Chronicle:
        """What is known of a chain, which is looked at from now on."""
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(target, Chronicle())
            work = self._watching(key, watch)
            watch.task = self._background.start(work, name=f"look at {key}")
        elif watch.target != target:
            _redirect(watch, target)
        return watch.chronicle

    async def first_look(self, key: Key) -> None:
        """Wait a moment until somebody has looked at a chain for the first time."""
        watch = self._watches.get(key)
        if watch is None or watch.looked.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK):
                await watch.looked.wait()

    def settle(self, key: Key, *, settled: bool) -> None:
        """Whether nothing about a chain is expected to change soon."""
        watch = self._watches.get(key)
        if watch is not None and watch.settled != settled:
            watch.settled = settled
            watch.again.set()

    def forget(self, key: Key) -> None:
        """A chain is gone."""
        watch = self._watches.pop(key, None)
        if watch is not None and watch.task is not None:
            watch.task.cancel()

    async def close(self) -> None:
        """Look at nothing any more."""
        await end(*(watch.task for watch in self._watches.values() if watch.task is not None))
        await self._background.close()

    async def _watching(self, key: Key, watch: _Watch) -> None:
        while True:
            watch.again.clear()
            async with self._turns:
                await self._look(watch)
            watch.looked.set()
            self._tell(key, watch)
            delay = self._pace.look if watch.settled else self._pace.look / _FAST
            try:
                async with asyncio.timeout(spread(delay)):
                    await watch.again.wait()
            except TimeoutError:
                continue

    def _tell(self, key: Key, watch: _Watch) -> None:
        now, gist = _clock(), watch.chronicle.gist()
        if gist != watch.told or now - watch.told_at >= self._pace.tell or not watch.settled:
            watch.told, watch.told_at = gist, now
            self.wake(key)

    async def _look(self, watch: _Watch) -> None:
        target, seen = watch.target, watch.chronicle
        await asyncio.gather(
            self._tried(seen.geth, target.geth, lambda: self._look_at_geth(target, seen)),
            self._tried(seen.node, target.node, lambda: self._look_at_node(target, seen)),
            self._tried(seen.l1, target.l1, lambda: self._look_at_l1(watch)),
        )

    async def _tried(self, seen: Seen, url: str, look: Callable[[], Awaitable[None]]) -> None:
        """Look at a server that is there, for as long as one look may take."""
        if not url:
            return
        try:
            async with asyncio.timeout(LONGEST_LOOK):
                await look()
        except TimeoutError:
            seen.failed(f"not everything was answered within {LONGEST_LOOK:g} s", _clock())
        except RpcError as error:
            seen.failed(str(error), _clock())
        except Exception:
            # Whatever a server made of an answer: the next look may go better.
            logger.exception("looking at a chain failed")
            seen.failed("the operator failed to ask; its log has the details", _clock())

    async def _look_at_geth(self, target: Target, seen: Chronicle) -> None:
        execution = await asking.execution(self._rpc, target.geth)
        if seen.first_block is None or _is_wrong(seen.first_block, target):
            seen.first_block = await asking.first_block(self._rpc, target.geth)
        seen.saw_execution(execution, _clock())
        await self._look_at_engine(target, seen)

    async def _look_at_engine(self, target: Target, seen: Chronicle) -> None:
        """Whether op-geth takes our token; nobody asks while the chain makes blocks."""
        knows: bool | None = None
        if target.engine and not seen.progress.unsafe.moves(_clock(), self._pace.look * 3):
            with suppress(RpcError):
                knows = await asking.engine_knows(self._rpc, target.engine, target.jwt)
        seen.knows_jwt = knows

    async def _look_at_node(self, target: Target, seen: Chronicle) -> None:
        seen.saw_heads(await asking.heads(self._rpc, target.node), _clock())

    async def _look_at_l1(self, watch: _Watch) -> None:
        target, seen = watch.target, watch.chronicle
        if seen.l1_chain_id is None or seen.l1_chain_id != target.l1_chain_id:
            seen.l1_chain_id = await asking.chain_id(self._rpc, target.l1)
            seen.l1.answered(_clock())
        if seen.l1_chain_id != target.l1_chain_id or not target.signers:
            return
        if watch.accounts_at is not None and _clock() - watch.accounts_at < self._pace.accounts:
            return
        price = await asking.gas_price(self._rpc, target.l1)
        for sender, address in target.signers.items():
            await self._look_at_account(target, seen, sender, address, price)
        watch.accounts_at = _clock()
        seen.l1.answered(_clock())

    async def _look_at_account(
        self, target: Target, seen: Chronicle, sender: Sender, address: str, price: int
    ) -> None:
        found = await asking.account(self._rpc, target.l1, address)
        payer = seen.payers.setdefault(sender, Payer())
        payer.saw(found, price, _clock(), datetime.now(UTC).replace(microsecond=0))


def _is_wrong(first_block: str, target: Target) -> bool:
    return bool(target.genesis_hash) and first_block != target.genesis_hash


def _redirect(watch: _Watch, target: Target) -> None:
    """Ask others from now on; what only the old ones said is forgotten."""
    seen, before = watch.chronicle, watch.target
    if target.l1 != before.l1:
        seen.l1, seen.l1_chain_id, watch.accounts_at = Seen(), None, None
    for sender in [*seen.payers]:
        if target.signers.get(sender) != before.signers.get(sender):
            del seen.payers[sender]
            watch.accounts_at = None
    watch.target = target
    watch.again.set()


def _clock() -> float:
    return asyncio.get_running_loop().time()
