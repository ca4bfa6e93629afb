"""One answer for all who ask at the same time."""

import asyncio

import pytest

from pequod.base.flights import Flights


async def test_all_who_ask_get_the_same_answer_and_the_next_one_another() -> None:
    flights: Flights[int] = Flights()
    calls: list[int] = []

    async def work() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return len(calls)

    assert await asyncio.gather(*(flights.share("a", work) for _ in range(3))) == [1, 1, 1]
    assert await flights.share("a", work) == 2


async def test_an_error_is_for_all_who_asked() -> None:
    flights: Flights[int] = Flights()

    async def work() -> int:
        await asyncio.sleep(0)
        raise LookupError

    both = await asyncio.gather(
        *(flights.share("a", work) for _ in range(2)), return_exceptions=True
    )
    assert [type(one) for one in both] == [LookupError, LookupError]


async def test_the_work_ends_with_the_last_one_who_waits() -> None:
    flights: Flights[int] = Flights()
    ended = asyncio.Event()

    async def work() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    waiting = [asyncio.create_task(flights.share("a", work)) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    assert not ended.is_set()
    waiting[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    assert ended.is_set()
