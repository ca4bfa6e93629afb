"""What the commands about modules share: an evaluator, sources, and exit codes.

0 fine · 1 violations or bad input · 2 usage · 3 a limit was hit · 4 the source cannot be had.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from pequod.base.logs import one_line
from pequod.cli import terminal
from pequod.cli.moduleplace import Place, place_of
from pequod.dev.places import cache_dir, shipped
from pequod.dev.programs import find_evaluator
from pequod.evaluator.errors import EvaluationError, ModuleError, OverLimitError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.evaluator.pool import Pool
from pequod.evaluator.results import Results
from pequod.evaluator.worker import Bounds
from pequod.sources.credentials import ANONYMOUS, Credentials
from pequod.sources.errors import BadReferenceError, SourceError, TooLargeError

VIOLATIONS, USAGE, LIMIT, NO_SOURCE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Workbench:
    """An evaluator, and the way to modules."""

    evaluator: Evaluator
    stack: AsyncExitStack
    credentials: Credentials = ANONYMOUS
    cue_registry: str | None = None

    async def module(self, text: str) -> Tree:
        """The tree of what somebody wrote as MODULE, and what it imports."""
        place = place_of(text)
        if place.kind == "folder":
            tree = _folder(Path(place.ref))
        elif place.kind == "embedded":
            return _embedded(place.ref)
        else:
            tree = await self._fetched(place)
        return await self._with_imports(tree, self.cue_registry) if self.cue_registry else tree

    async def _with_imports(self, tree: Tree, registry: str) -> Tree:
        from pequod.cli.remote import fetch_imports

        with terminal.waiting(f"Fetching what is imported from {registry}"):
            modules = await fetch_imports(self.stack, tree, registry, self.credentials)
        return replace(tree, modules=modules)

    async def _fetched(self, place: Place) -> Tree:
        from pequod.cli.remote import fetch

        with terminal.waiting(f"Fetching {place.ref}"):
            artifact = await fetch(self.stack, place, self.credentials)
        return Tree(root=artifact.tree, digest=artifact.digest)

    async def given(self, text: str) -> dict[str, Any]:
        """The input: one YAML or JSON document that is an object, from a file or from `-`."""
        name = "standard input" if text == "-" else text
        content = sys.stdin.read() if text == "-" else _read(Path(text))
        try:
            documents = await self.evaluator.documents(content, name=name)
        except ModuleError as error:
            terminal.fail(str(error), "Correct the input; YAML and JSON are understood.")
        if len(documents) != 1 or not isinstance(documents[0], dict):
            terminal.fail(
                f"{name} must hold one YAML or JSON object and holds {_described(documents)}",
                "Write the fields of the module's #Input; `pequod module schema` shows them.",
            )
        return documents[0]


@asynccontextmanager
async def workbench(
    credentials: Credentials = ANONYMOUS, cue_registry: str | None = None
) -> AsyncIterator[Workbench]:
    """Everything that a command about modules needs; one worker, no cache of results."""
    with terminal.build_progress() as report:
        program = await find_evaluator(report)
    async with AsyncExitStack() as stack:
        pool = Pool((str(program),), size=1, bounds=Bounds(seconds=30.0))
        stack.push_async_callback(pool.close)
        evaluator = Evaluator(pool, Results(), version="")
        yield Workbench(evaluator, stack, credentials, cue_registry)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn what can go wrong with a module into a sentence and its exit code."""
    try:
        yield
    except OverLimitError as error:
        _end(f"a limit was hit: {error}", "Make the module or its input smaller.", LIMIT)
    except EvaluationError as error:
        for one in error.problems:
            terminal.errors.print(f"  {one_line(str(one), 1000)}", markup=False)
        where = "at the places above" if error.problems else "or its input"
        _end(str(error), f"Correct the module {where}.", VIOLATIONS)
    except SourceError as error:
        problem = f"{error.reference}: {error.step}: {error.problem}"
        codes = {TooLargeError: LIMIT, BadReferenceError: USAGE}
        next_step = error.next_step[:1].upper() + error.next_step[1:] + "."
        _end(problem, next_step, codes.get(type(error), NO_SOURCE))


def store_folder() -> Path:
    """Where the commands keep what they fetched."""
    return cache_dir() / "sources"


def _end(problem: str, next_step: str, code: int) -> NoReturn:
    terminal.errors.print(f"error: {problem}\n{next_step}", markup=False)
    raise SystemExit(code)


def _folder(folder: Path) -> Tree:
    if not str(folder) or not folder.is_dir():
        _end(
            f"there is no folder {folder}",
            "Name a folder, embedded:NAME, oci://… or git+https://…?ref=…&path=….",
            NO_SOURCE,
        )
    return Tree(root=folder.absolute())


def _embedded(name: str) -> Tree:
    root = shipped("modules")
    names = sorted(path.name for path in root.iterdir() if path.is_dir())
    if name not in names:
        known = ", ".join(f"embedded:{one}" for one in names)
        _end(f"no module {name} comes with Pequod", f"Known are {known}.", NO_SOURCE)
    return Tree(root=root / name)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError) as error:
        problem = "is not there" if isinstance(error, FileNotFoundError) else "is no text"
        terminal.fail(f"{path} {problem}", "Name a YAML or JSON file, or - for standard input.")


def _described(documents: tuple[Any, ...]) -> str:
    if len(documents) == 1:
        return f"a {type(documents[0]).__name__}"
    return f"{len(documents)} documents"
