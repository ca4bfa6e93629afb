"""`pequod validate`: everything that is wrong with an input."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from pequod.cli import terminal
from pequod.cli.options import (
    CredentialsOption,
    CueRegistryOption,
    InputOption,
    ModuleArgument,
    NameOption,
    NamespaceOption,
    credentials_of,
)
from pequod.cli.violations import print_violations
from pequod.cli.workbench import VIOLATIONS, Workbench, exit_codes, workbench
from pequod.evaluator.answers import Violation
from pequod.evaluator.evaluator import Tree
from pequod.render.cue import Rendering, render


def validate(  # noqa: PLR0913 -- a signature is the command line
    module: ModuleArgument,
    *,
    given: InputOption,
    name: NameOption = "example",
    namespace: NamespaceOption = "default",
    policies: Annotated[
        str | None,
        typer.Option(metavar="MODULE", help="Policies to judge by as well: embedded:policy."),
    ] = None,
    credentials: CredentialsOption = None,
    cue_registry: CueRegistryOption = None,
) -> None:
    """Say everything that is wrong with an input; exit code 1 when it would be refused."""

    async def main() -> list[Violation]:
        async with workbench(credentials_of(credentials), cue_registry) as bench:
            tree = await bench.module(module)
            values = await bench.given(given)
            rendering = await render(bench.evaluator, tree, values, name=name, namespace=namespace)
            found = list(rendering.violations)
            if policies is not None:
                context = {"name": name, "namespace": namespace}
                subject = {"input": values, "context": context}
                found += await _judged(bench, await bench.module(policies), subject, rendering)
            return found

    with exit_codes():
        found = terminal.run(main)
    print_violations(found)
    if any(violation.severity == "Error" for violation in found):
        raise SystemExit(VIOLATIONS)
    terminal.say("valid")


async def _judged(
    bench: Workbench, policies: Tree, subject: Mapping[str, object], rendering: Rendering
) -> list[Violation]:
    """What policies find in an input and, if there is one, in its graph."""
    if rendering.graph is not None:
        subject = {**subject, "graph": msgspec.to_builtins(rendering.graph)}
    verdicts = await bench.evaluator.policies(policies, subject)
    return [
        msgspec.structs.replace(violation, message=f"{violation.message} (policy {verdict.name})")
        for verdict in verdicts
        for violation in verdict.violations
    ]
