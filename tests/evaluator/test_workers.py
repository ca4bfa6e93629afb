"""Processes that answer, that are killed, and that never outlive whoever has started them."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evaluators
from pequod.evaluator.errors import BrokenError, EvaluationError, ModuleError, OverLimitError
from pequod.evaluator.pool import Pool
from pequod.evaluator.worker import Bounds, Worker
from waiting import eventually

ENDLESS = {
    "a.cue": 'package a\nimport "list"\n#Input: {...}\n'
    "graph: nodes: [for a in list.Range(0, 1e5, 1) for b in list.Range(0, 1e5, 1) if a < 0 {b}]\n"
}
PARENT = """
import asyncio, subprocess, sys
from pequod.evaluator.worker import Bounds, Worker

async def main(program, tree):
    workers = [await Worker.start((program,), Bounds()) for _ in range(2)]
    params = {"tree": tree, "path": "", "input": {}, "context": {}}
    busy = asyncio.create_task(workers[0].ask("cue.render", params, seconds=60))
    # Somebody else keeps the pipe open: it does not tell of our end.
    pipe = workers[1]._process.stdin.get_extra_info("pipe").fileno()
    other = subprocess.Popen(["sleep", "600"], pass_fds=[pipe], stdout=subprocess.DEVNULL)
    print(other.pid, *(worker.pid for worker in workers), flush=True)
    await busy

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def endless(tmp_path: Path) -> dict[str, Any]:
    """A request that takes longer than anybody waits."""
    tree = evaluators.write(tmp_path / "endless", ENDLESS)
    return {"tree": str(tree), "path": "", "input": {}, "context": {}}


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of workers are made."""
    folder = tmp_path / "homes"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def state(pid: int) -> str:
    """The state of a process as the kernel has it; nothing when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def gone(pid: int) -> bool:
    return state(pid) in {"", "X"}


def busy(pid: int) -> bool:
    """Whether a process has burnt time, far beyond what its start takes."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(times[11]) + int(times[12]) > 0.3 * os.sysconf("SC_CLK_TCK")


def children() -> list[int]:
    """Workers of this process, dead ones that nobody has buried included."""
    return [
        int(number)
        for task in Path("/proc/self/task").iterdir()
        for number in (task / "children").read_text().split()
        if named(int(number)) == evaluators.program().name
    ]


def named(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


@asynccontextmanager
async def evaluating_endlessly(
    pool: Pool, params: dict[str, Any]
) -> AsyncIterator[tuple[asyncio.Task[msgspec.Raw], int]]:
    """A request in the middle of its evaluation, and the process that is at it."""
    task = asyncio.create_task(pool.ask("cue.render", params))
    await eventually(lambda: pool.workers, "there is a worker")
    pid = pool.workers[0].pid
    await eventually(lambda: busy(pid), "the worker evaluates")
    try:
        yield task, pid
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_worker_that_is_killed_in_the_middle_is_replaced(endless: dict[str, Any]) -> None:
    async with (
        evaluators.pool(size=1) as pool,
        evaluating_endlessly(pool, endless) as (task, pid),
    ):
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrokenError, match="it was killed"):
            await task
        await pool.ask("ping", {})
        assert pid not in {worker.pid for worker in pool.workers}


async def test_a_worker_that_was_killed_while_it_waited_harms_nobody() -> None:
    """Its death must not be taken for the fault of whoever asks next."""
    async with evaluators.pool(size=1) as pool:
        await pool.ask("ping", {})
        [worker] = pool.workers
        os.kill(worker.pid, signal.SIGKILL)
        await eventually(lambda: not worker.alive, "its end is noticed")
        await pool.ask("ping", {})


async def test_what_is_not_done_in_time_is_killed(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=1) as pool:
        await pool.start()
        [worker] = pool.workers
        with pytest.raises(OverLimitError, match=r"not done within 0\.7 seconds"):
            await pool.ask("cue.render", endless, seconds=0.7)
        await eventually(lambda: gone(worker.pid), "the process is gone")
        await pool.ask("ping", {})


async def test_a_request_may_have_less_time_than_the_bounds_but_not_more(
    endless: dict[str, Any],
) -> None:
    async with evaluators.pool(size=1, bounds=Bounds(seconds=0.5)) as pool:
        for seconds, limit in ((0.2, r"0\.2"), (60, r"0\.5")):
            with pytest.raises(OverLimitError, match=f"within {limit} seconds"):
                await pool.ask("cue.render", endless, seconds=seconds)


async def test_what_burns_too_much_cpu_is_ended_by_the_kernel(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=1, bounds=Bounds(seconds=60, cpu_seconds=1)) as pool:
        with pytest.raises(OverLimitError, match="more than 1 seconds of CPU"):
            await pool.ask("cue.render", endless)


async def test_what_needs_too_much_memory_is_ended_by_the_kernel(tmp_path: Path) -> None:
    doubling = "".join(f"_s{n}: _s{n - 1} + _s{n - 1}\n" for n in range(1, 33))
    text = f'package a\n#Input: {{...}}\n_s0: "aaaa"\n{doubling}graph: nodes: [_s32]\n'
    tree = evaluators.write(tmp_path, {"a.cue": text})
    params = {"tree": str(tree), "path": "", "input": {}, "context": {}}
    async with evaluators.pool(size=1, bounds=Bounds(memory_bytes=256 * 2**20)) as pool:
        with pytest.raises(OverLimitError, match="more than 256 MiB"):
            await pool.ask("cue.render", params)
        await pool.ask("ping", {})


async def test_whoever_no_longer_asks_leaves_no_worker_behind(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=1) as pool:
        async with evaluating_endlessly(pool, endless) as (task, pid):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await eventually(lambda: gone(pid), "the process is gone")
        await pool.ask("ping", {})


async def test_workers_die_with_their_parent_even_in_the_middle(
    tmp_path: Path, endless: dict[str, Any]
) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        str(evaluators.program()),
        endless["tree"],
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)},
    )
    assert parent.stdout is not None
    other, *pids = [int(number) for number in (await parent.stdout.readline()).split()]
    await eventually(lambda: busy(pids[0]), "the first evaluates")
    parent.kill()
    await parent.wait()
    # An orphan stays a zombie where nobody adopts it: no concern of ours.
    try:
        for pid in pids:
            await eventually(lambda pid=pid: state(pid) in {"", "X", "Z"}, "the worker is dead")
    finally:
        os.kill(other, signal.SIGKILL)


async def test_a_worker_knows_nothing_of_our_environment(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    async with evaluators.pool(size=1) as pool:
        await pool.ask("ping", {})
        [worker] = pool.workers
        [home] = homes.iterdir()
        pairs = Path(f"/proc/{worker.pid}/environ").read_text().rstrip("\0").split("\0")
        assert sorted(pairs) == [f"HOME={home}", f"TMPDIR={home}"]
        assert Path(f"/proc/{worker.pid}/cwd").resolve() == home
        opened = {path.readlink().parts[0] for path in Path(f"/proc/{worker.pid}/fd").iterdir()}
        assert not any(name.startswith("socket:") for name in opened)
    assert list(homes.iterdir()) == []


async def test_a_worker_that_is_killed_leaves_no_home(homes: Path, endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=1) as pool:
        await pool.start()
        [home] = homes.iterdir()
        with pytest.raises(OverLimitError):
            await pool.ask("cue.render", endless, seconds=0.2)
        await eventually(lambda: not home.exists(), "the home is removed")


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.005, 0.02])
async def test_a_start_that_is_given_up_leaves_nothing_behind(homes: Path, moment: float) -> None:
    starting = [
        asyncio.create_task(Worker.start((str(evaluators.program()),), Bounds())) for _ in range(4)
    ]
    await asyncio.sleep(moment)
    for task in starting:
        task.cancel()
    for end in await asyncio.gather(*starting, return_exceptions=True):
        if isinstance(end, Worker):
            await end.kill()
    await eventually(lambda: not children(), "no process is left")
    await eventually(lambda: not list(homes.iterdir()), "no home is left")


async def test_a_worker_is_replaced_after_a_number_of_requests() -> None:
    async with evaluators.pool(size=1, bounds=Bounds(requests=3)) as pool:
        seen: Counter[int] = Counter()
        for _ in range(8):
            before = {worker.pid: worker.served for worker in pool.workers}
            await pool.ask("ping", {})
            seen.update(w.pid for w in pool.workers if w.served > before.get(w.pid, 1))
        assert len(seen) > 2
        assert max(seen.values()) <= 3


async def test_a_worker_that_holds_too_much_memory_is_replaced() -> None:
    async with evaluators.pool(size=1, bounds=Bounds(resident_bytes=1)) as pool:
        await pool.ask("ping", {})
        [worker] = pool.workers
        await eventually(lambda: gone(worker.pid), "the worn worker is gone")
        await eventually(lambda: pool.workers, "another is ready before anybody asks")


async def test_a_worker_that_nobody_asks_gives_its_memory_back_until_somebody_does() -> None:
    async with evaluators.pool(size=1, bounds=Bounds(idle_seconds=0.2)) as pool:
        await pool.ask("ping", {})
        await eventually(lambda: not pool.workers, "the idle worker is gone")
        assert await pool.usable() == "0 workers"
        assert not children(), "whether workers answer is known without another"
        await pool.ask("ping", {})


async def test_a_worker_that_was_started_only_to_see_whether_one_answers_is_not_kept() -> None:
    async with evaluators.pool(size=1) as pool:
        await pool.usable()
        await eventually(lambda: not children(), "the worker is gone")
        await pool.ask("ping", {})
        [worker] = pool.workers
        await pool.usable()
        assert pool.workers == (worker,)


async def test_a_worker_that_is_asked_again_and_again_stays() -> None:
    async with evaluators.pool(size=1, bounds=Bounds(idle_seconds=0.5, requests=10**6)) as pool:
        await pool.ask("ping", {})
        [worker] = pool.workers
        until = asyncio.get_running_loop().time() + 1.5
        while asyncio.get_running_loop().time() < until:
            await pool.ask("ping", {})
        assert pool.workers == (worker,)


async def test_workers_that_cannot_be_started_any_more_are_not_usable(tmp_path: Path) -> None:
    program = tmp_path / "evaluator"
    shutil.copy(evaluators.program(), program)
    pool = Pool((str(program),), size=1, bounds=Bounds(idle_seconds=0.1))
    try:
        await pool.usable()
        await eventually(lambda: not pool.workers, "the idle worker is gone")
        program.unlink()
        with pytest.raises(EvaluationError):
            await pool.ask("ping", {})
        with pytest.raises(EvaluationError):
            await pool.usable()
    finally:
        await pool.close()


async def test_an_owner_never_has_all_places(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=4, bounds=Bounds(seconds=60)) as pool:
        greedy = [
            asyncio.create_task(pool.ask("cue.render", endless, owner="greedy")) for _ in range(6)
        ]
        await asyncio.sleep(0)  # all of them are ahead of the others
        for number in range(8):
            await pool.ask("ping", {}, owner=f"other {number}")
        assert not any(task.done() for task in greedy)
        assert sum(busy(worker.pid) for worker in pool.workers) <= 2
        for task in greedy:
            task.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)
        await pool.ask("ping", {}, owner="greedy")


async def test_there_are_never_more_workers_than_places(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=2) as pool:
        asked = [pool.ask("cue.render", endless, seconds=0.1) for _ in range(6)]
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(end) for end in ends} == {OverLimitError}
        await asyncio.gather(*(pool.ask("ping", {}) for _ in range(6)))
        await eventually(
            lambda: len(pool.workers) <= 2, "only as many are left as there are places"
        )


async def test_nothing_is_left_when_a_pool_closes(homes: Path, endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=2) as pool:
        asked = [pool.ask("cue.render", endless, seconds=0.2) for _ in range(4)]
        await asyncio.gather(*asked, return_exceptions=True)
    assert pool.workers == ()
    await eventually(lambda: not children(), "neither a process nor a zombie is left")
    assert list(homes.iterdir()) == []


async def test_closing_ends_what_is_being_evaluated(endless: dict[str, Any]) -> None:
    async with evaluators.pool(size=1) as pool, evaluating_endlessly(pool, endless) as (task, _):
        await pool.close()
        with pytest.raises((BrokenError, OverLimitError)):
            await task
        with pytest.raises(BrokenError, match="has been closed"):
            await pool.ask("ping", {})
        assert pool.workers == ()
    await eventually(lambda: not children(), "no process is left")


async def test_homes_of_workers_whose_parent_was_killed_are_swept(homes: Path) -> None:
    old, young = homes / "pequod-evaluator-old", homes / "pequod-evaluator-young"
    for folder in (old, young, homes / "another"):
        folder.mkdir()
    os.utime(old, (1, 1))
    os.utime(homes / "another", (1, 1))
    async with evaluators.pool(size=1) as pool:
        await pool.start()
        [used] = set(homes.iterdir()) - {young, homes / "another"}
        os.utime(used, (1, 1))
        async with evaluators.pool(size=1) as second:
            await second.start()
            assert used.exists()
    assert set(homes.iterdir()) == {young, homes / "another"}


@pytest.mark.parametrize(
    ("verb", "params"),
    [("nosuch", {}), ("oci.pull", {}), ("cel", []), ("cel", {"expressions": 7}), ("cue.render", 1)],
)
async def test_nonsense_is_our_own_fault(verb: str, params: object) -> None:
    async with evaluators.pool(size=1) as pool:
        with pytest.raises(BrokenError):
            await pool.ask(verb, params)
        await pool.ask("ping", {})


async def test_the_worker_with_a_network_evaluates_nothing() -> None:
    async with evaluators.pool(size=1, network=True) as pool:
        for verb in ("cue.render", "helm", "kustomize", "rego", "cel", "crd", "yaml"):
            with pytest.raises(BrokenError, match=f"unknown verb {verb}"):
                await pool.ask(verb, {})


async def test_an_answer_that_is_too_large_is_over_the_limit() -> None:
    async with evaluators.pool(size=1, bounds=Bounds(output_bytes=10_000)) as pool:
        text = "a: &a [" + "xxxxxxxxxx," * 100 + "]\nb: [" + "*a," * 50 + "]\n"
        with pytest.raises(OverLimitError, match=r"the result has \d+ bytes and 10000 are allowed"):
            await pool.ask("yaml", {"name": "a", "text": text})
        with pytest.raises(OverLimitError, match=r"the request has \d+ bytes and 10000 are"):
            await pool.ask("yaml", {"name": "a", "text": "x" * 10_000})
        await pool.ask("ping", {})


@pytest.mark.parametrize("program", ["/nowhere/evaluator", "/bin/false", "/bin/echo"])
async def test_a_program_that_is_no_evaluator_is_told(homes: Path, program: str) -> None:
    pool = Pool((program,), size=1)
    with pytest.raises(EvaluationError):
        await pool.start()
    with pytest.raises(EvaluationError):
        await pool.ask("ping", {})
    await pool.close()
    assert list(homes.iterdir()) == []


async def test_a_worker_serves_on_after_an_error_of_whoever_asks(tmp_path: Path) -> None:
    tree = evaluators.write(tmp_path, {"a.cue": "package a\nx: 1 & 2\n"})
    async with evaluators.pool(size=1) as pool:
        await pool.ask("ping", {})
        [worker] = pool.workers
        with pytest.raises(ModuleError):
            await pool.ask(
                "cue.render", {"tree": str(tree), "path": "", "input": {}, "context": {}}
            )
        await pool.ask("ping", {})
        assert pool.workers == (worker,)
