"""What the shipped modules render is what an API server takes, to the last field."""

from pathlib import Path

import pytest
import yaml

import evaluators
from clusters import Api
from pequod.dev.places import shipped
from pequod.evaluator.answers import Rendered
from pequod.evaluator.evaluator import Tree
from pequod.kube.client import Client, Write
from pequod.kube.discovery import Discovery
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport

TRIED = Write(dry_run=True, validation="Strict")
CASES = [
    pytest.param(path, id=f"{path.parents[1].name}-{path.name.removesuffix('_test.yaml')}")
    for module in ("webservice", "database")
    for path in sorted((shipped("modules") / module / "tests").glob("*_test.yaml"))
    if "violations" not in yaml.safe_load(path.read_text())["expect"]
]


@pytest.fixture(scope="session", autouse=True)
def the_program_is_built() -> None:
    evaluators.version()


async def rendered(case: Path, namespace: str) -> Rendered:
    test = yaml.safe_load(case.read_text())
    context = {**test["context"], "namespace": namespace}
    async with evaluators.evaluating(size=1) as evaluator:
        return await evaluator.render(Tree(root=case.parents[1]), test["input"], context)


@pytest.mark.parametrize("case", CASES)
async def test_every_object_would_be_created(case: Path, api: Api, namespace: str) -> None:
    graph = (await rendered(case, namespace)).graph
    assert graph is not None
    transport = Transport(own_access(api.kubeconfig))
    try:
        client = Client(transport)
        discovery = Discovery(client)
        for node in graph["nodes"]:
            if node.get("applyPolicy", {}).get("mode") == "Observe":
                continue
            described = node["object"]
            kind = await discovery.find(described["apiVersion"], described["kind"])
            stored = await client.apply(kind, described, TRIED)
            assert stored["metadata"]["uid"]
    finally:
        await transport.close()


def test_there_is_something_to_try() -> None:
    assert len(CASES) >= 8
