"""What is remembered of evaluations, for how long, and what never is."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pequod.evaluator.errors import (
    BrokenError,
    EvaluationError,
    MissingError,
    ModuleError,
    OverLimitError,
    UnavailableError,
)
from pequod.evaluator.results import Keeping, Results

KEY = "ab" + "0" * 62
OTHER = "cd" + "0" * 62
DAY = 24 * 3600.0


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Evaluation:
    """Answers, or fails, and counts how often it was asked."""

    def __init__(self, answer: bytes | Exception = b'{"a":1}') -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> bytes:
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def aged(folder: Path, clock: Clock) -> None:
    """Let the files on disk be as old as the clock says."""
    for path in files(folder):
        os.utime(path, (clock.now, clock.now))


async def test_the_same_question_is_answered_once(clock: Clock) -> None:
    results, evaluation = Results(clock=clock), Evaluation()
    assert await results.get(KEY, evaluation) == b'{"a":1}'
    assert await results.get(KEY, evaluation) == b'{"a":1}'
    await results.get(OTHER, evaluation)
    assert evaluation.asked == 2


async def test_a_result_is_forgotten_after_its_time(clock: Clock) -> None:
    results, evaluation = Results(clock=clock), Evaluation()
    await results.get(KEY, evaluation)
    clock.now += DAY - 1
    await results.get(KEY, evaluation)
    clock.now += 2
    await results.get(KEY, evaluation)
    assert evaluation.asked == 2


async def test_what_was_used_longest_ago_makes_room(clock: Clock) -> None:
    results = Results(clock=clock, keeping=Keeping(memory_bytes=4000))
    evaluation = Evaluation(b"x" * 1000)
    keys = [f"{number:064x}" for number in range(5)]
    for key in keys[:4]:
        await results.get(key, evaluation)
    await results.get(keys[0], evaluation)
    await results.get(keys[4], evaluation)
    assert evaluation.asked == 5
    for key in (keys[0], keys[2], keys[3], keys[4]):
        await results.get(key, evaluation)
    assert evaluation.asked == 5
    await results.get(keys[1], evaluation)
    assert evaluation.asked == 6


async def test_a_result_that_would_drive_out_the_others_is_not_kept(clock: Clock) -> None:
    results = Results(clock=clock, keeping=Keeping(memory_bytes=4000))
    evaluation = Evaluation(b"x" * 1001)
    await results.get(KEY, evaluation)
    await results.get(KEY, evaluation)
    assert evaluation.asked == 2


async def test_the_disk_survives_a_restart(tmp_path: Path, clock: Clock) -> None:
    evaluation = Evaluation()
    await Results(tmp_path, clock=clock).get(KEY, evaluation)
    aged(tmp_path, clock)
    second = Results(tmp_path, clock=clock)
    await second.open()
    assert await second.get(KEY, evaluation) == b'{"a":1}'
    assert evaluation.asked == 1
    clock.now += DAY + 1
    third = Results(tmp_path, clock=clock)
    await third.get(KEY, evaluation)
    assert evaluation.asked == 2


async def test_what_is_on_disk_is_for_nobody_else(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "results"
    results = Results(folder, clock=clock)
    await results.open()
    await results.get(KEY, Evaluation())
    [path] = files(folder)
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content.replace(b'"a":1', b'"a":2'),
        lambda content: content[:-1],
        lambda content: content[:20],
        lambda _: b"",
        lambda content: content + b"x",
    ],
    ids=["tampered", "cut short", "without checksum", "empty", "longer"],
)
async def test_a_file_that_is_not_as_it_was_written_is_ignored(
    tmp_path: Path, clock: Clock, harm: Callable[[bytes], bytes]
) -> None:
    await Results(tmp_path, clock=clock).get(KEY, Evaluation())
    [path] = files(tmp_path)
    path.write_bytes(harm(path.read_bytes()))
    aged(tmp_path, clock)
    evaluation = Evaluation()
    assert await Results(tmp_path, clock=clock).get(KEY, evaluation) == b'{"a":1}'
    assert evaluation.asked == 1
    assert b'"a":1' in path.read_bytes()


@pytest.mark.parametrize(
    "answer",
    [
        b'{"objects":[{"kind":"Secret","data":{"password":"Y2FuYXJ5"}}]}',
        b'{"graph":{"nodes":[{"object":{"data":{"x":"Y2FuYXJ5"},"kind":"Secret"}}]}}',
        b'{"violations":[{"path":"input.x","message":"is Y2FuYXJ5, but must be a number"}]}',
    ],
)
async def test_a_secret_never_reaches_the_disk(tmp_path: Path, clock: Clock, answer: bytes) -> None:
    results, evaluation = Results(tmp_path, clock=clock), Evaluation(answer)
    await results.get(KEY, evaluation)
    await results.get(KEY, evaluation)
    assert evaluation.asked == 1
    assert not any(b"Y2FuYXJ5" in path.read_bytes() for path in files(tmp_path))


async def test_equal_questions_at_the_same_time_are_asked_once(
    tmp_path: Path, clock: Clock
) -> None:
    results, evaluation = Results(tmp_path, clock=clock), Evaluation()
    answers = await asyncio.gather(*(results.get(KEY, evaluation) for _ in range(10)))
    assert answers == [b'{"a":1}'] * 10
    assert evaluation.asked == 1


@pytest.mark.parametrize("error", [OverLimitError("too much"), ModuleError("wrong")])
async def test_a_failure_that_would_repeat_itself_is_remembered_for_a_while(
    tmp_path: Path, clock: Clock, error: EvaluationError
) -> None:
    results, evaluation = Results(tmp_path, clock=clock), Evaluation(error)
    for _ in range(3):
        with pytest.raises(type(error)):
            await results.get(KEY, evaluation)
    assert evaluation.asked == 1
    clock.now += 301
    evaluation.answer = b"mended"
    assert await results.get(KEY, evaluation) == b"mended"


async def test_a_failure_never_reaches_the_disk(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ModuleError):
        await Results(tmp_path, clock=clock).get(KEY, Evaluation(ModuleError("wrong")))
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "error", [BrokenError("died"), UnavailableError("away"), MissingError("not yet")]
)
async def test_a_failure_that_may_pass_is_not_remembered(
    clock: Clock, error: EvaluationError
) -> None:
    results, evaluation = Results(clock=clock), Evaluation(error)
    with pytest.raises(type(error)):
        await results.get(KEY, evaluation)
    evaluation.answer = b"here"
    assert await results.get(KEY, evaluation) == b"here"


async def test_a_remembered_failure_does_not_grow_with_every_one_who_meets_it(
    clock: Clock,
) -> None:
    results, evaluation = Results(clock=clock), Evaluation(ModuleError("wrong"))
    depths = []
    for _ in range(5):
        with pytest.raises(ModuleError) as caught:
            await results.get(KEY, evaluation)
        depths.append(len(caught.traceback))
        assert caught.value.__context__ is None
    assert max(depths[1:]) == min(depths[1:])


async def test_one_who_no_longer_waits_takes_nothing_from_the_others(clock: Clock) -> None:
    results = Results(clock=clock)
    go = asyncio.Event()

    async def slow() -> bytes:
        await go.wait()
        return b"done"

    waiting = [asyncio.create_task(results.get(KEY, slow)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*waiting[1:]) == [b"done", b"done"]
    assert waiting[0].cancelled()


async def test_what_nobody_waits_for_any_more_is_ended(clock: Clock) -> None:
    results = Results(clock=clock)
    ended = asyncio.Event()

    async def endless() -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return b""

    waiting = [asyncio.create_task(results.get(KEY, endless)) for _ in range(2)]
    for _ in range(5):
        await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert ended.is_set()
    assert await results.get(KEY, Evaluation(b"anew")) == b"anew"


async def test_a_folder_that_cannot_be_written_harms_nobody(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "a file"
    folder.write_text("")
    results = Results(folder, clock=clock, keeping=Keeping(disk_bytes=1))
    await results.open()
    evaluation = Evaluation()
    for key in (KEY, OTHER):
        assert await results.get(key, evaluation) == b'{"a":1}'
    assert await results.get(KEY, evaluation) == b'{"a":1}'
    assert evaluation.asked == 2


async def test_the_disk_is_swept_when_it_is_full(tmp_path: Path, clock: Clock) -> None:
    results = Results(tmp_path, clock=clock, keeping=Keeping(disk_bytes=4000))
    ask: Callable[[str], Awaitable[bytes]] = lambda key: results.get(key, Evaluation(b"x" * 900))  # noqa: E731
    for number in range(12):
        await ask(f"{number:064x}")
        aged(tmp_path, clock)
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 4000


async def test_leftovers_of_an_earlier_life_are_swept(tmp_path: Path, clock: Clock) -> None:
    leftover = tmp_path / "ab" / f".{KEY}.1234"
    leftover.parent.mkdir()
    leftover.write_text("half")
    os.utime(leftover, (clock.now - DAY - 1, clock.now - DAY - 1))
    await Results(tmp_path, clock=clock).open()
    assert not leftover.exists()
