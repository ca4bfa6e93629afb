"""The tests that a module brings along."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from pequod.evaluator.errors import ModuleError
from pequod.evaluator.evaluator import Evaluator, Tree
from pequod.render.cue import graph_of
from pequod.render.expectations import Case, differences, policy_differences


async def cases(evaluator: Evaluator, module: Path) -> AsyncIterator[tuple[str, Case]]:
    """Every test of a module, by its name; raises ModuleError for one that cannot be read."""
    for path in sorted((module / "tests").glob("*_test.yaml")):
        text = await asyncio.to_thread(path.read_text)
        name = path.name.removesuffix("_test.yaml")
        try:
            documents = await evaluator.documents(text, name=path.name)
            yield name, msgspec.convert(documents, tuple[Case])[0]
        except msgspec.ValidationError as error:
            raise ModuleError(f"{path.name} is no test of a module: {error}") from error


async def run_case(evaluator: Evaluator, module: Tree, case: Case) -> list[str]:
    """In what a module does not do what a test expects."""
    if case.expect.policies is not None:
        subject = {"input": case.input, "context": case.context}
        if case.graph is not None:
            subject["graph"] = case.graph
        verdicts = await evaluator.policies(module, subject, parameters=case.parameters)
        return policy_differences(case.expect.policies, verdicts)
    happened = await evaluator.render(module, case.input, case.context)
    if happened.graph is not None:
        graph_of(happened.graph)
    return differences(case.expect, happened)
