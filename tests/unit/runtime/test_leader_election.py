"""At most one replica believes that it leads, and it stops believing in time."""

import asyncio
from dataclasses import dataclass

import pytest

from leases import Register
from pequod.kube.errors import ConflictError, FencedError, UnreachableError
from pequod.runtime.leader import Leadership, Timing
from pequod.runtime.lease import Lease, Term
from virtualtime import virtual_time

TIMING = Timing(lease=15, renew=10, retry=2)


@dataclass
class Wire:
    """One replica's way to the register."""

    register: Register
    name: str
    hangs: bool = False

    async def read(self) -> Lease | None:
        await self._travel()
        return self.register.lease

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        await self._travel()
        return self.register.put(term, over)

    async def _travel(self) -> None:
        await asyncio.sleep(0.01)
        if self.name in self.register.cut:
            raise UnreachableError("cut")
        if self.hangs:
            await asyncio.sleep(1_000_000)


def replica(register: Register, name: str) -> tuple[Leadership, Wire]:
    wire = Wire(register, name)
    return Leadership(wire, identity=name, timing=TIMING), wire


@virtual_time
async def test_the_first_leads_at_once_and_the_second_waits() -> None:
    register = Register()
    first, _ = replica(register, "first")
    second, _ = replica(register, "second")
    async with asyncio.timeout(1):
        await first.acquire()
    keeping = asyncio.create_task(first.keep())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(600):
            await second.acquire()
    assert first.leading
    keeping.cancel()


@virtual_time
async def test_a_leader_that_dies_is_followed_after_its_lease_has_run_out() -> None:
    register = Register()
    clock = asyncio.get_running_loop().time
    first, _ = replica(register, "first")
    second, _ = replica(register, "second")
    await first.acquire()
    died = clock()
    async with asyncio.timeout(30):
        await second.acquire()
    assert 15 <= clock() - died <= 20
    assert not first.leading
    assert register.lease is not None
    assert register.lease.term.lease_transitions == 1


@virtual_time
async def test_a_leader_that_leaves_is_followed_at_once() -> None:
    register = Register()
    clock = asyncio.get_running_loop().time
    first, _ = replica(register, "first")
    second, _ = replica(register, "second")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(5)
    await first.release()
    left = clock()
    await waiting
    assert clock() - left < 3
    assert not first.leading


@virtual_time
async def test_case_39_a_leader_that_cannot_renew_steps_down_before_anybody_else_can_lead() -> None:
    register = Register()
    clock = asyncio.get_running_loop().time
    first, wire = replica(register, "first")
    second, _ = replica(register, "second")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    follower = asyncio.create_task(second.acquire())
    await asyncio.sleep(30)
    wire.hangs = True
    last_renewal = register.writes[-1][0]
    await keeping
    assert clock() - last_renewal <= TIMING.renew + 0.1
    assert not first.leading
    with pytest.raises(FencedError):
        first.check()
    assert not second.leading
    await follower
    assert clock() - last_renewal >= TIMING.lease


@virtual_time
async def test_case_39_a_lease_that_was_deleted_is_made_anew_by_its_holder_only() -> None:
    register = Register()
    first, _ = replica(register, "first")
    second, _ = replica(register, "second")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    follower = asyncio.create_task(second.acquire())
    await asyncio.sleep(10)
    for _ in range(20):
        register.lease = None
        await asyncio.sleep(4.3)
        assert first.leading
        assert not follower.done()
        assert not second.leading
    keeping.cancel()
    follower.cancel()


class DeletedWhileItIsRenewed(Wire):
    """Answers a renewal as an API server does that finds the Lease deleted half-way."""

    async def write(self, term: Term, *, over: Lease | None) -> Lease:
        if over is not None and self.register.lease is not None:
            self.register.lease = None
            raise ConflictError(409)
        return await super().write(term, over=over)


@virtual_time
async def test_case_39_a_lease_that_is_deleted_while_it_is_renewed_stays_with_its_holder() -> None:
    register = Register()
    first = Leadership(DeletedWhileItIsRenewed(register, "first"), identity="first", timing=TIMING)
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    await asyncio.sleep(60)
    assert first.leading
    assert not keeping.done()
    assert register.lease is not None
    keeping.cancel()


@virtual_time
async def test_case_39_a_lease_that_somebody_gave_to_another_is_lost_at_the_next_renewal() -> None:
    register = Register()
    first, _ = replica(register, "first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    await asyncio.sleep(5)
    register.put(Term(holder_identity="intruder", lease_duration_seconds=15), register.lease)
    async with asyncio.timeout(3):
        await keeping
    assert not first.leading


@virtual_time
async def test_case_39_an_edit_that_leaves_our_name_in_the_lease_changes_nothing() -> None:
    register = Register()
    first, _ = replica(register, "first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    for _ in range(10):
        assert register.lease is not None
        register.put(register.lease.term, register.lease)
        await asyncio.sleep(7)
        assert first.leading
    keeping.cancel()


@virtual_time
async def test_a_short_cut_of_the_network_costs_nobody_the_lead() -> None:
    register = Register()
    first, _ = replica(register, "first")
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    await asyncio.sleep(9)
    register.cut.add("first")
    await asyncio.sleep(5)
    register.cut.clear()
    await asyncio.sleep(60)
    assert first.leading
    assert not keeping.done()
    keeping.cancel()


@virtual_time
async def test_a_replica_that_lost_the_lead_can_win_it_back() -> None:
    register = Register()
    first, wire = replica(register, "first")
    await first.acquire()
    wire.hangs = True
    await first.keep()
    wire.hangs = False
    async with asyncio.timeout(30):
        await first.acquire()
    assert first.leading


@virtual_time
async def test_a_lease_is_given_back_even_if_the_answer_to_a_renewal_was_not_waited_for() -> None:
    register = Register()
    first, _ = replica(register, "first")
    await first.acquire()
    assert register.lease is not None
    register.put(register.lease.term, register.lease)
    await first.release()
    assert register.lease.term.holder_identity == ""


@virtual_time
async def test_a_lease_that_somebody_else_has_is_not_given_away() -> None:
    register = Register()
    first, _ = replica(register, "first")
    await first.acquire()
    register.put(Term(holder_identity="intruder", lease_duration_seconds=15), register.lease)
    await first.release()
    assert register.lease is not None
    assert register.lease.term.holder_identity == "intruder"


@virtual_time
async def test_a_stored_lease_is_never_shorter_than_the_one_we_believe_in() -> None:
    register = Register()
    wire = Wire(register, "first")
    timing = Timing(lease=15.4, renew=15.2, retry=1)
    await Leadership(wire, identity="first", timing=timing).acquire()
    assert register.lease is not None
    assert register.lease.term.lease_duration_seconds == 16


@virtual_time
async def test_a_machine_that_slept_wakes_up_without_the_lead() -> None:
    slept = 0.0
    clock = asyncio.get_running_loop().time
    one = Leadership(
        Wire(Register(), "one"), identity="one", timing=TIMING, clock=lambda: clock() + slept
    )
    await one.acquire()
    assert one.leading
    slept = 60.0
    with pytest.raises(FencedError):
        one.check()


def test_timing_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="lease > renew > retry"):
        Timing(lease=10, renew=10, retry=2)
