"""One patch moves the fields of tools to us: bound to one version of one object, and repeatable."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adoptions import LAST_APPLIED, kubectl_apply, managers
from graphs import Graphs, Object, config_map
from pequod.graph.desired import Desired, desired
from pequod.graph.ownership import entries, taken_over
from pequod.graph.takeover import take_over
from pequod.kube.client import Client, Write
from pequod.kube.errors import ConflictError, InvalidError
from pequod.kube.kinds import Kind
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport

KIND = Kind("", "v1", "ConfigMap", "configmaps")
LEGACY = config_map("web", metadata={"labels": {"old": "yes"}}, a="1", gone="x")


@pytest_asyncio.fixture
async def client(operator_account: Path) -> AsyncIterator[Client]:
    transport = Transport(own_access(operator_account))
    yield Client(transport)
    await transport.close()


def live(graphs: Graphs) -> Object:
    return graphs.live("configmaps", "web")


def asked_for(graphs: Graphs) -> Desired:
    return desired(
        config_map("web", a="2"), KIND, namespace=graphs.namespace, graph="uid-of-a-graph"
    )


async def take(client: Client, graphs: Graphs, found: Object) -> None:
    await take_over(client, asked_for(graphs), found, force=False, may_recreate=False)


async def test_fields_move_and_nothing_else_does(
    graphs: Graphs, client: Client, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, LEGACY)
    before = live(graphs)
    await take(client, graphs, before)
    after = live(graphs)
    assert managers(after) == {"pequod-operator": "Apply"}
    assert after["data"] == before["data"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert LAST_APPLIED not in after["metadata"].get("annotations", {})
    again = live(graphs)["metadata"]
    await take(client, graphs, after)
    assert live(graphs)["metadata"]["resourceVersion"] == again["resourceVersion"], (
        "what is taken over is not taken over twice"
    )


async def test_an_object_that_has_changed_meanwhile_is_a_conflict_and_looked_at_again(
    graphs: Graphs, client: Client, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, LEGACY)
    stale = live(graphs)
    graphs.edit("configmaps", "web", {"metadata": {"annotations": {"new": "1"}}})
    with pytest.raises(ConflictError):
        await take(client, graphs, stale)
    assert "kubectl-client-side-apply" in managers(live(graphs))


async def test_another_object_of_the_same_name_is_never_touched(
    graphs: Graphs, client: Client, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, LEGACY)
    found = live(graphs)
    other = found | {"metadata": found["metadata"] | {"uid": "another"}}
    with pytest.raises(ConflictError):
        await take(client, graphs, other)
    assert "kubectl-client-side-apply" in managers(live(graphs))


async def test_what_the_api_server_would_not_take_leaves_the_object_as_it_was(
    graphs: Graphs, client: Client, tmp_path: Path
) -> None:
    kubectl_apply(graphs, tmp_path, LEGACY)
    found = live(graphs)
    body = config_map("web") | {"data": {"not a key": "1"}}
    broken = desired(body, KIND, namespace=graphs.namespace, graph="uid-of-a-graph")
    with pytest.raises(InvalidError):
        await take_over(client, broken, found, force=True, may_recreate=False)
    assert "kubectl-client-side-apply" in managers(live(graphs))


async def test_the_api_server_keeps_what_was_moved_and_removes_it_with_the_next_apply(
    graphs: Graphs, client: Client, tmp_path: Path
) -> None:
    """Pinned: this is what everything else here relies on."""
    kubectl_apply(graphs, tmp_path, LEGACY)
    await take(client, graphs, live(graphs))
    found = live(graphs)
    assert taken_over(entries(found["metadata"]), "v1") is None
    body = asked_for(graphs).with_precondition(found["metadata"]["uid"])
    answer = await client.apply(KIND, body, Write())
    assert "old" not in answer["metadata"]["labels"]
    assert answer["data"] == {"a": "2"}
