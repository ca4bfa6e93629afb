"""What an evaluation costs, beside the command lines that a user would run instead.

The same module and input to `cue export`, the same chart and values to `helm template`, and to a
warm worker: without anything known, with the module known and a new input (which is what a worker
usually does; the goal is about that), and with the result known. Then memory over many renders.
Run it with `python -m bench.evaluator`.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from bench.plane import MIB, cpu_seconds, own_cpu_seconds

from pequod.base.tasks import end
from pequod.dev.gomodule import GoModule, ensure_built
from pequod.dev.programs import find_evaluator
from pequod.evaluator.errors import EvaluationError
from pequod.evaluator.evaluator import Evaluator, Release, Tree, program_version
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Keeping, Results
from pequod.evaluator.worker import Bounds

ROOT = Path(__file__).parents[1]
LANGUAGES = GoModule(
    name="bench-languages",
    version="v1",
    packages=(("cue", "cuelang.org/go/cmd/cue"), ("helm", "helm.sh/helm/v4/cmd/helm")),
    folder=ROOT / "bench/languages",
)
CONTEXT = {"name": "shop", "namespace": "team"}
CACHED, UNCACHED, FLAT = 100.0, 3.0, 0.05
"""How many times faster a known and an unknown result have to be; how much memory may move."""
NEIGHBOUR = 1.5
"""How many times longer a render may take while somebody else sends bombs."""
BOMB = (
    """#Input: {...}
input: #Input
context: {...}
"""
    + "".join(
        f"a{level}: [{', '.join([f'a{level - 1}'] * 10)}]\n" if level else "a0: [1]\n"
        for level in range(10)
    )
    + "graph: nodes: a9\n"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way of doing it: seconds by the clock and of processors, for one evaluation."""

    name: str
    wall: float
    cpu: float

    def line(self, reference: "Row") -> str:
        """The row of a table, with how many times faster it is."""
        return (
            f"  {self.name:<34}{self.wall * 1e3:>10.3f} ms{self.cpu * 1e3:>10.3f} ms CPU"
            f"{reference.wall / self.wall:>10.1f} times"
        )


def _processor_seconds(*pids: int) -> float:
    """Of this process, its children that have ended, and processes that run."""
    return own_cpu_seconds() + sum(map(cpu_seconds, pids))


def command(name: str, rounds: int, *words: str | Path) -> Row:
    """A command line, run again and again; the median of its times."""
    walls = []
    before = _processor_seconds()
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        walls.append(time.perf_counter() - began)
    return Row(name, statistics.median(walls), (_processor_seconds() - before) / rounds)


async def asked(name: str, rounds: int, pool: Pool, ask: Callable[[], Awaitable[object]]) -> Row:
    """The same for something of ours."""
    walls = []
    await ask()
    pids = [worker.pid for worker in pool.workers]
    before = _processor_seconds(*pids)
    for _ in range(rounds):
        began = time.perf_counter()
        await ask()
        walls.append(time.perf_counter() - began)
    return Row(name, statistics.median(walls), (_processor_seconds(*pids) - before) / rounds)


def _cue_input() -> dict[str, Any]:
    case = yaml.safe_load((ROOT / "modules/webservice/tests/full_test.yaml").read_text())
    given: dict[str, Any] = case["input"]
    return given


async def cue(programs: Path, evaluator: Evaluator, pool: Pool, rounds: int) -> bool:
    """CUE: the shipped module webservice, with every option of its input."""
    given = _cue_input()
    module = ROOT / "modules/webservice"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"input": given, "context": CONTEXT}, file)
        file.flush()
        words = (programs / "cue", "export", "-e", "graph", ".", file.name)
        os.chdir(module)
        reference = command("cue export", rounds, *words)
    loose = Tree(root=module)
    known = Tree(root=module, digest="bench")
    numbers = count(1)

    async def new_input() -> None:
        labels = {"number": str(next(numbers))}
        await evaluator.render(known, {**given, "labels": labels}, CONTEXT)

    rows = (
        reference,
        await asked("nothing known", rounds, pool, lambda: evaluator.render(loose, given, CONTEXT)),
        await asked("module known, another input", rounds, pool, new_input),
        await asked("result known", 200, pool, lambda: evaluator.render(known, given, CONTEXT)),
    )
    return _told("CUE: modules/webservice with a full input", rows)


async def helm(programs: Path, evaluator: Evaluator, pool: Pool, rounds: int) -> bool:
    """Helm: a chart with subcharts, hooks and a schema."""
    chart = ROOT / "tests/evaluator/charts/web"
    words = (programs / "helm", "template", "shop", chart, "--namespace", "team")
    reference = command("helm template", rounds, *words)
    release = Release(name="shop", namespace="team")
    known = Tree(root=chart, digest="bench")
    numbers = count(1)

    async def new_values() -> None:
        values = {"podAnnotations": {"number": str(next(numbers))}}
        await evaluator.chart(known, Release(name="shop", namespace="team", values=values))

    rows = (
        reference,
        await asked("other values", rounds, pool, new_values),
        await asked("result known", 200, pool, lambda: evaluator.chart(known, release)),
    )
    return _told("Helm: tests/evaluator/charts/web", rows)


def _told(title: str, rows: tuple[Row, ...]) -> bool:
    reference, *_, unknown, known = rows
    print(f"\n{title}")
    for row in rows:
        print(row.line(reference))
    cached = reference.wall / known.wall
    uncached = reference.wall / unknown.wall
    print(
        f"  known {cached:.0f} times (goal {CACHED:.0f}), unknown {uncached:.1f} ({UNCACHED:.0f})"
    )
    return cached >= CACHED and uncached >= UNCACHED


async def memory(evaluator: Evaluator, pool: Pool, renders: int) -> bool:
    """Resident memory of the worker, and of this process, over many renders."""
    given = _cue_input()
    module = Tree(root=ROOT / "modules/webservice", digest="bench")
    samples: list[int] = []
    began = time.perf_counter()
    for number in range(renders):
        await evaluator.render(module, {**given, "labels": {"number": f"n{number}"}}, CONTEXT)
        if number % (renders // 20) == 0:
            samples.append(sum(worker.resident() for worker in pool.workers))
    took = time.perf_counter() - began
    half = len(samples) // 2
    first, second = statistics.mean(samples[2:half]), statistics.mean(samples[half:])
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"\nMemory over {renders} renders ({renders / took:.0f} a second)")
    print(f"  worker, first half   {first / MIB:>8.1f} MiB")
    print(f"  worker, second half  {second / MIB:>8.1f} MiB ({second / first - 1:+.1%})")
    print(f"  worker, most seen    {max(samples) / MIB:>8.1f} MiB")
    print(f"  this process, most   {own / MIB:>8.1f} MiB")
    return second / first - 1 <= FLAT


async def _median(rounds: int, work: Callable[[], Awaitable[object]]) -> float:
    walls = []
    await work()
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        walls.append(time.perf_counter() - began)
    return statistics.median(walls)


async def neighbours(program: Path, rounds: int) -> bool:
    """How long a render takes while somebody else sends one bomb after the other."""
    given = _cue_input()
    module = Tree(root=ROOT / "modules/webservice", digest="bench")
    numbers = count(1)
    pool = Pool((str(program),), bounds=Bounds(seconds=2.0))
    evaluator = Evaluator(pool, Results(), version="")

    async def render() -> None:
        labels = {"number": f"n{next(numbers)}"}
        await evaluator.render(module, {**given, "labels": labels}, CONTEXT, owner="neighbour")

    async def bomb(folder: Path) -> None:
        while True:
            with suppress(EvaluationError):
                await evaluator.render(Tree(root=folder), {}, CONTEXT, owner="bomber")

    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "bomb.cue").write_text(BOMB)
        try:
            await pool.start()
            alone = await _median(rounds, render)
            bombing = [asyncio.create_task(bomb(Path(name))) for _ in range(8)]
            await asyncio.sleep(1.0)
            beside = await _median(rounds, render)
            await end(*bombing)
        finally:
            await pool.close()
    print("\nNeighbours: a new input of a known module")
    print(f"  alone                             {alone * 1e3:>10.3f} ms")
    print(f"  beside 8 who send bombs           {beside * 1e3:>10.3f} ms")
    slower = beside / alone
    print(f"  {slower:.2f} times as long (goal at most {NEIGHBOUR})")
    return slower <= NEIGHBOUR


async def main() -> None:
    """Measure everything, and say whether the goals were reached."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--renders", type=int, default=20_000)
    asked_for = options.parse_args()
    programs = await ensure_built(LANGUAGES, lambda _: None)
    program = await find_evaluator(lambda _: None)
    pool = Pool((str(program),), size=1)
    results = Results(keeping=Keeping(memory_bytes=32 * MIB))
    evaluator = Evaluator(pool, results, version=await program_version(program))
    try:
        await pool.start()
        reached = [
            await cue(programs, evaluator, pool, asked_for.rounds),
            await helm(programs, evaluator, pool, asked_for.rounds),
            await neighbours(program, asked_for.rounds * 5),
            await memory(evaluator, pool, asked_for.renders),
        ]
    finally:
        await pool.close()
    print(f"\nAll goals reached: {'yes' if all(reached) else 'no'}")


if __name__ == "__main__":
    asyncio.run(main())
