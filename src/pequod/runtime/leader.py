"""Who acts: one replica at a time, by a Lease.

Time is measured here, on the monotonic clock, never compared with the clock of another machine: a
candidate waits until it has seen no change of the Lease for as long as the Lease lasts; a leader
stops believing in itself `renew` seconds after it began its last successful renewal, which is
before anybody else can begin to believe in themselves. `check` is what every write asks at the
last moment. No fencing is perfect without help from the store; what remains is a write that was
on its way already, and those carry preconditions.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from prometheus_client import Gauge

from pequod.base.backoff import spread
from pequod.kube.errors import ConflictError, FencedError, KubeError, NotFoundError
from pequod.kube.objects import micro_time
from pequod.runtime.lease import Lease, LeaseStore, Term

_leader = Gauge("pequod_leader", "Whether this replica leads.")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take; each is shorter than the one before it."""

    lease: float = 15.0
    """Seconds without a renewal after which somebody else may lead."""
    renew: float = 10.0
    """Seconds without a renewal after which a leader steps down."""
    retry: float = 2.0
    """Seconds between two tries."""

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry > 0:
            raise ValueError("lease > renew > retry > 0 must hold")


class Leadership:
    """One replica's part in the election."""

    def __init__(
        self,
        store: LeaseStore,
        *,
        identity: str,
        timing: Timing | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`clock` never stands still, even while the machine sleeps; the loop's own may."""
        self.identity = identity
        self._store = store
        self._timing = timing or Timing()
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._until = float("-inf")
        self._acquired = ""
        self._clock = clock or asyncio.get_running_loop().time

    @property
    def leading(self) -> bool:
        """Whether we lead, as far as anybody can know."""
        return self._left > 0

    @property
    def _left(self) -> float:
        return self._until - self._clock()

    def check(self) -> None:
        """Refuse when we may not write."""
        if not self.leading:
            raise FencedError("another replica may be leading; nothing is written")

    async def acquire(self) -> None:
        """Wait until we lead."""
        while True:
            try:
                if await self._try():
                    _leader.set(1)
                    _log.info("leading", identity=self.identity)
                    return
            except KubeError as error:
                _log.warning("lease not available", lease=str(self._store), error=str(error))
            await asyncio.sleep(spread(self._timing.retry))

    async def keep(self) -> None:
        """Renew for as long as we can; returns when we lead no longer."""
        try:
            while self.leading:
                await asyncio.sleep(min(self._timing.retry, max(self._left, 0)))
                async with asyncio.timeout(self._left):
                    await self._renew()
        except (TimeoutError, _LostError):
            pass
        self._step_down()
        _log.warning("no longer leading", identity=self.identity, lease=str(self._store))

    async def release(self) -> None:
        """Let somebody else lead without having to wait for our Lease to end."""
        if not self.leading or self._seen is None:
            return
        self._step_down()
        term = Term(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=self._acquired,
            renew_time=micro_time(),
            lease_transitions=self._seen.term.lease_transitions,
        )
        try:
            try:
                await self._store.write(term, over=self._seen)
            except ConflictError:
                # A renewal whose answer we did not wait for; it is still ours to give back.
                lease = await self._store.read()
                if lease is None or lease.term.holder_identity != self.identity:
                    return
                await self._store.write(term, over=lease)
            _log.info("lease released", lease=str(self._store))
        except KubeError as error:
            _log.warning("lease not released", lease=str(self._store), error=str(error))

    def _step_down(self) -> None:
        self._until = float("-inf")
        _leader.set(0)

    async def _try(self) -> bool:
        """Take the Lease if it is free, or if its holder has not been heard of for too long."""
        lease = await self._store.read()
        if lease is not None and (self._seen is None or lease != self._seen):
            self._say_who_leads(lease)
            self._seen, self._seen_at = lease, self._clock()
        if self._held_by_somebody():
            # Also when it was deleted: its holder may not know yet, and has its time to run out.
            return False
        self._acquired = micro_time()
        try:
            await self._write(over=lease)
        except (ConflictError, NotFoundError):
            return False
        return self.leading

    def _say_who_leads(self, lease: Lease) -> None:
        before = None if self._seen is None else self._seen.term.holder_identity
        leader = lease.term.holder_identity
        if leader and leader not in {before, self.identity}:
            _log.info("another replica leads", leader=leader, lease=str(self._store))

    def _held_by_somebody(self) -> bool:
        """Whether the Lease, as last seen, is another's whose time has not run out."""
        if self._seen is None:
            return False
        term = self._seen.term
        if not term.holder_identity or term.holder_identity == self.identity:
            return False
        lasts = term.lease_duration_seconds or self._timing.lease
        return self._clock() - self._seen_at <= lasts

    async def _renew(self) -> None:
        """Renew once; raises when the Lease is somebody else's, waits when it cannot be known."""
        assert self._seen is not None, "who leads has seen the Lease"
        try:
            await self._write(over=self._seen)
        except NotFoundError:
            await self._recreate()
        except ConflictError:
            await self._look_who_leads()
        except KubeError as error:
            _log.warning("lease not renewed", lease=str(self._store), error=str(error))

    async def _recreate(self) -> None:
        _log.warning("the lease was deleted; made anew", lease=str(self._store))
        try:
            await self._write(over=None)
        except ConflictError as error:
            raise _LostError from error
        except KubeError as error:
            _log.warning("lease not renewed", lease=str(self._store), error=str(error))

    async def _look_who_leads(self) -> None:
        """Somebody wrote to the Lease: it is still ours if it still has our name."""
        try:
            lease = await self._store.read()
        except KubeError as error:
            _log.warning("lease not read", lease=str(self._store), error=str(error))
            return
        if lease is None:
            await self._recreate()
        elif lease.term.holder_identity != self.identity:
            raise _LostError
        else:
            self._seen, self._seen_at = lease, self._clock()

    async def _write(self, *, over: Lease | None) -> None:
        """Write the Lease with our name; success counts from the moment before it was sent."""
        began = self._clock()
        ours = over is not None and over.term.holder_identity == self.identity
        term = Term(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self._timing.lease),
            acquire_time=self._acquired,
            renew_time=micro_time(),
            lease_transitions=_transitions(over) + (0 if ours or over is None else 1),
        )
        self._seen = await self._store.write(term, over=over)
        self._seen_at = began
        self._until = began + self._timing.renew


class _LostError(Exception):
    """The Lease is somebody else's."""


def _transitions(lease: Lease | None) -> int:
    return (lease.term.lease_transitions or 0) if lease is not None else 0
