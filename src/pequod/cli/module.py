"""`pequod module`: make, test, look at, push and pull modules."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pequod.cli import terminal
from pequod.cli.options import (
    CredentialsOption,
    CueRegistryOption,
    ModuleArgument,
    credentials_of,
)
from pequod.cli.workbench import VIOLATIONS, Workbench, exit_codes, workbench

app = typer.Typer(help="Make, test, look at, push and pull modules.", no_args_is_help=True)

FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The module's folder.", show_default=False)
]
ReferenceArgument = Annotated[
    str,
    typer.Argument(metavar="REFERENCE", help="oci://host/path/module:tag", show_default=False),
]


@app.command()
def init(folder: FolderArgument) -> None:
    """Make a module that renders, with a test, to begin with."""
    from pequod.cli.scaffold import scaffold

    with terminal.explained():
        for path in scaffold(folder):
            terminal.say(f"made {path}")
    terminal.say(f"Try it: pequod module test {folder}")


@app.command()
def schema(
    module: ModuleArgument,
    *,
    credentials: CredentialsOption = None,
    cue_registry: CueRegistryOption = None,
) -> None:
    """Print what a module takes, as JSON Schema."""

    async def main() -> bytes:
        async with workbench(credentials_of(credentials), cue_registry) as bench:
            found = await bench.evaluator.input_schema(await bench.module(module))
            return msgspec.json.format(msgspec.json.encode(found))

    with exit_codes():
        terminal.say(terminal.run(main).decode())


@app.command("test")
def run_tests(
    module: ModuleArgument,
    *,
    credentials: CredentialsOption = None,
    cue_registry: CueRegistryOption = None,
) -> None:
    """Run the tests of a module; exit code 1 when one fails."""

    async def main() -> list[tuple[str, list[str]]]:
        async with workbench(credentials_of(credentials), cue_registry) as bench:
            return await _tested(bench, module)

    with exit_codes():
        results = terminal.run(main)
    for name, found in results:
        terminal.say(f"{'failed' if found else 'passed'}  {name}")
        for difference in found[:20]:
            terminal.say(f"        {difference}")
    failed = sum(bool(found) for _, found in results)
    terminal.say(f"{len(results)} tests, {failed} failed")
    if failed:
        raise SystemExit(VIOLATIONS)


async def _tested(bench: Workbench, module: str) -> list[tuple[str, list[str]]]:
    from pequod.render.moduletests import cases, run_case

    tree = await bench.module(module)
    found = [case async for case in cases(bench.evaluator, tree.root)]
    if not found:
        terminal.fail(
            f"{module} has no tests",
            "Write one: tests/<case>_test.yaml with input, context and expect.",
        )
    return [(name, await run_case(bench.evaluator, tree, case)) for name, case in found]


@app.command()
def push(
    folder: FolderArgument, reference: ReferenceArgument, *, credentials: CredentialsOption = None
) -> None:
    """Store a module in an OCI registry."""
    from pequod.cli.remote import push_module

    async def main() -> str:
        async with workbench(credentials_of(credentials)) as bench:
            root = (await bench.module(str(folder))).root
            with terminal.waiting(f"Pushing {reference}"):
                return await push_module(bench.stack, root, reference, bench.credentials)

    with exit_codes():
        terminal.say(terminal.run(main))


@app.command()
def pull(
    module: ModuleArgument, folder: FolderArgument, *, credentials: CredentialsOption = None
) -> None:
    """Copy a module into a folder that is not there yet."""
    from pequod.cli.scaffold import copy_tree

    async def main() -> None:
        async with workbench(credentials_of(credentials)) as bench:
            copy_tree((await bench.module(module)).root, folder)

    with exit_codes():
        terminal.run(main)
    terminal.say(f"made {folder}")
