"""What runs in a thread has ended before anybody goes on."""

import asyncio
import threading

import pytest

from pequod.base.threads import finished


async def test_the_result_and_the_error_come_through() -> None:
    assert await finished(int, "3") == 3
    with pytest.raises(ValueError, match="invalid literal"):
        await finished(int, "x")


async def test_who_is_cancelled_again_and_again_still_waits_for_the_end() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(10)
        ended.set()

    task = asyncio.create_task(finished(work))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
