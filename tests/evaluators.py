"""The evaluator as tests use it: the real program, in few and small workers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from pequod.dev.programs import find_evaluator
from pequod.evaluator.evaluator import Evaluator, program_version
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results
from pequod.evaluator.worker import Bounds


@cache
def program() -> Path:
    """The program, from the cache or built now."""
    return asyncio.run(find_evaluator(lambda _: None))


@cache
def version() -> str:
    return asyncio.run(program_version(program()))


@asynccontextmanager
async def pool(
    *, size: int = 2, bounds: Bounds | None = None, network: bool = False
) -> AsyncIterator[Pool]:
    command = (str(program()), "--network") if network else (str(program()),)
    made = Pool(command, size=size, bounds=bounds)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def evaluating(
    *, size: int = 2, bounds: Bounds | None = None, results: Results | None = None
) -> AsyncIterator[Evaluator]:
    async with pool(size=size, bounds=bounds) as workers:
        yield Evaluator(workers, results or Results(), version=version())


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
