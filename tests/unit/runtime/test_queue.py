"""A key is in line once, with one worker, and its failures are its own."""

import asyncio
import itertools

from pequod.base.backoff import Backoff
from pequod.runtime.queue import TURNS, Priority, Queue
from virtualtime import virtual_time

_names = (f"test-{number}" for number in itertools.count())


def queue(**backoff: float) -> Queue[str]:
    return Queue(next(_names), Backoff(spread=0.0, **backoff))


async def is_empty(line: Queue[str]) -> bool:
    try:
        async with asyncio.timeout(0.001):
            line.done(await line.get())
    except TimeoutError:
        return True
    return False


@virtual_time
async def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    line = queue()
    line.add("a")
    line.add("a")
    line.done(await line.get())
    assert await is_empty(line)


@virtual_time
async def test_a_key_that_is_added_while_it_is_worked_on_is_handed_out_again_afterwards() -> None:
    line = queue()
    line.add("a")
    assert await line.get() == "a"
    line.add("a")
    assert len(line) == 0
    line.done("a")
    assert await line.get() == "a"


@virtual_time
async def test_what_somebody_changed_comes_before_what_the_clock_says() -> None:
    line = queue()
    line.add("old", Priority.RESYNC)
    line.add("promoted", Priority.RESYNC)
    line.add("changed")
    line.add("promoted")
    assert [await line.get() for _ in range(3)] == ["changed", "promoted", "old"]


@virtual_time
async def test_what_is_on_its_way_comes_before_what_has_not_begun() -> None:
    line = queue()
    line.add("new")
    line.add("promoted")
    line.add("going", Priority.GOING)
    line.add("promoted", Priority.GOING)
    assert [await line.get() for _ in range(3)] == ["going", "promoted", "new"]


@virtual_time
async def test_what_has_not_begun_does_not_wait_for_ever() -> None:
    """However many others are on their way, and are added again as soon as they were served."""
    line = queue()
    line.add("new")
    line.add("old", Priority.RESYNC)
    served: list[str] = []
    while not {"new", "old"} <= {*served}:
        line.add(f"going {len(served)}", Priority.GOING)
        served.append(await line.get())
    assert 1 <= served.index("new") < TURNS[Priority.CHANGE]
    assert served.index("new") < served.index("old") < TURNS[Priority.RESYNC]


@virtual_time
async def test_keys_of_the_same_line_are_handed_out_in_their_order() -> None:
    line = queue()
    for key in "abc":
        line.add(key)
    assert [await line.get() for _ in range(3)] == ["a", "b", "c"]


@virtual_time
async def test_a_delayed_key_comes_when_it_is_due_and_the_earliest_time_wins() -> None:
    line = queue()
    clock = asyncio.get_running_loop().time
    began = clock()
    line.add_after("a", 60)
    line.add_after("a", 10)
    line.add_after("a", 30)
    assert await line.get() == "a"
    assert clock() - began == 10
    line.done("a")
    assert await is_empty(line)


@virtual_time
async def test_a_key_that_is_added_now_does_not_come_again_later() -> None:
    line = queue()
    line.add_after("a", 10)
    line.add("a")
    line.done(await line.get())
    await asyncio.sleep(20)
    assert len(line) == 0


@virtual_time
async def test_delays_after_failures_grow_to_their_limit_and_a_success_forgets_them() -> None:
    line = queue(first=1, limit=8)
    assert [line.retry("a") for _ in range(5)] == [1, 2, 4, 8, 8]
    assert line.failures("a") == 5
    line.succeeded("a")
    assert line.retry("a") == 1


@virtual_time
async def test_a_failing_key_makes_nobody_else_wait() -> None:
    line = queue(first=100)
    line.retry("poison")
    line.add("healthy")
    assert await line.get() == "healthy"


@virtual_time
async def test_a_forgotten_key_does_not_come_back() -> None:
    line = queue()
    line.add_after("a", 5)
    line.retry("a")
    line.forget("a")
    await asyncio.sleep(1000)
    assert len(line) == 0
    assert line.failures("a") == 0


@virtual_time
async def test_workers_that_wait_are_woken_one_for_each_key() -> None:
    line = queue()
    got: list[str] = []

    async def work() -> None:
        key = await line.get()
        got.append(key)

    workers = [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        line.add(key)
    await asyncio.gather(*workers)
    assert sorted(got) == ["a", "b", "c"]


@virtual_time
async def test_a_worker_that_is_cancelled_while_it_waits_takes_no_key_with_it() -> None:
    line = queue()
    impatient = asyncio.create_task(line.get())
    await asyncio.sleep(0)
    line.add("a")
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    async with asyncio.timeout(1):
        assert await line.get() == "a"


@virtual_time
async def test_a_worker_that_is_cancelled_when_it_is_woken_wakes_another() -> None:
    line = queue()
    impatient, patient = (asyncio.create_task(line.get()) for _ in range(2))
    await asyncio.sleep(0)
    line.add("a")
    (woken,) = (t for t in (impatient, patient) if t._fut_waiter.done())  # type: ignore[attr-defined]
    (other,) = {impatient, patient} - {woken}
    woken.cancel()
    async with asyncio.timeout(1):
        assert await other == "a"


@virtual_time
async def test_after_a_clear_nothing_of_before_comes_back() -> None:
    line = queue()
    line.add("a")
    line.add_after("b", 1)
    line.retry("c")
    line.clear()
    await asyncio.sleep(1000)
    assert await is_empty(line)
