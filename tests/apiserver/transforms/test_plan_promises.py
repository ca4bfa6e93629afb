"""What a plan promises is what an execution does, and what it refuses is refused."""

import asyncio
from functools import partial
from pathlib import Path

from commandline import Pequod
from graphs import config_map, deployment, node
from pequod.graph.model import GRAPH_LABEL
from transforms import NODES, Plans, StartPlatform, inline, written
from waiting import until

EXISTS = [{"type": "Exists"}]


def promised(planned: tuple[str, str]) -> str:
    """Why something would be refused, or held back."""
    return planned[1].partition(": ")[2]


async def test_fields_of_others_are_refused_in_the_plan_as_in_the_execution(
    plans: Plans, platform: StartPlatform
) -> None:
    plans.want("web", node("a", config_map("a", ours="1")))
    async with platform():
        await plans.done("web")
        plans.write("others", config_map("a", theirs="2"))
        both = config_map("a", ours="1", theirs="3")
        plans.rehearse("web", node("a", both))
        planned = (await plans.planned("web"))["a"]
        assert planned[0] == "Update"
        assert planned[1].startswith("would be refused: ")
        assert "others manages .data.theirs" in planned[1]
        assert "1 would be refused" in plans.says("web")["message"]
        assert promised(planned) in await plans.refused("web", "FieldConflict")
        plans.rehearse("web", node("a", both, applyPolicy={"conflictPolicy": "Force"}))
        planned = (await plans.planned("web"))["a"]
        assert 'data.theirs: "2" -> "3"' in planned[1]
        assert "others manages .data.theirs so far" in planned[1]
        assert "refused" not in planned[1]
        await plans.done("web")
    assert plans.live("configmaps", "a")["data"] == {"ours": "1", "theirs": "3"}


async def test_drift_is_planned_to_be_taken_back_from_whom_has_done_it(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    wanted = node("a", config_map("a", ours="1"))
    plans.want("web", wanted)
    async with platform():
        await plans.done("web")
    plans.write("others", config_map("a", ours="2"), force=True)
    file = written(tmp_path, {"nodes": [wanted]}, cueRef=inline(NODES))
    said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=1)
    assert 'data.ours: "2" -> "1"' in said.stdout
    assert "others manages .data.ours so far" in " ".join(said.stdout.split())
    async with platform():
        await until(lambda: plans.live("configmaps", "a")["data"] == {"ours": "1"})


async def test_an_adoption_from_a_controller_is_refused_in_the_plan_as_in_the_execution(
    plans: Plans, platform: StartPlatform
) -> None:
    plans.write("controller", config_map("a", value="theirs"))
    wanted = config_map("a", value="ours")
    plans.want("web", node("a", wanted, applyPolicy={"mode": "Adopt"}), dryRun=True)
    async with platform():
        planned = (await plans.planned("web"))["a"]
        assert planned[0] == "Adopt"
        assert "controller manages .data.value" in planned[1]
        assert promised(planned) in await plans.refused("web", "FieldConflict")
        policy = {"mode": "Adopt", "conflictPolicy": "Force"}
        plans.rehearse("web", node("a", wanted, applyPolicy=policy))
        planned = (await plans.planned("web"))["a"]
        assert 'data.value: "theirs" -> "ours"' in planned[1]
        assert "managed by controller so far" in planned[1]
        await plans.done("web")
    assert plans.live("configmaps", "a")["data"] == {"value": "ours"}


async def test_what_belongs_to_a_living_graph_is_not_planned_to_be_adopted(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    adopting = node("a", config_map("a"), applyPolicy={"mode": "Adopt"})
    plans.want("one", node("a", config_map("a")))
    async with platform():
        await plans.done("one")
        plans.want("two", adopting, dryRun=True)
        planned = (await plans.planned("two"))["a"]
        assert "would be refused: ConfigMap" in planned[1]
        assert "belongs to another graph" in planned[1]
        file = written(tmp_path, {"nodes": [adopting]}, "two", cueRef=inline(NODES))
        said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=3)
        assert "belongs to another graph" in " ".join(said.stdout.split())
        assert promised(planned) in await plans.refused("two", "AlreadyExists")


async def test_what_belonged_to_a_graph_that_is_gone_is_planned_to_be_adopted(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    label = {"labels": {GRAPH_LABEL: "6f1c9d5e-6b8e-4d37-9f0a-3f2f6f1f8a11"}}
    plans.write("kubectl", config_map("a", metadata=label))
    adopting = node("a", config_map("a"), applyPolicy={"mode": "Adopt"})
    plans.want("web", adopting, dryRun=True)
    async with platform():
        assert (await plans.planned("web"))["a"][0] == "Adopt"
        file = written(tmp_path, {"nodes": [adopting]}, cueRef=inline(NODES))
        said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=1)
        assert "1 to adopt" in said.stdout
        await plans.done("web")


async def test_what_asks_not_to_be_pruned_is_planned_to_be_left(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    a, b = node("a", config_map("a")), node("b", config_map("b"))
    plans.want("web", a, b)
    async with platform():
        await plans.done("web")
        asks = {"metadata": {"annotations": {"pequod.io/prune": "disabled"}}}
        assert plans.api.patch(plans.path("configmaps", "b"), asks).code == 200
        plans.rehearse("web", a)
        assert await plans.planned("web") == {}
        left = f"1 left behind (ConfigMap/{plans.namespace}/b)"
        assert left in plans.says("web")["message"]
        file = written(tmp_path, {"nodes": [a]}, cueRef=inline(NODES))
        said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=1)
        assert left in " ".join(said.stdout.split())
        await plans.done("web")
        assert list(plans.inventory("transform-web")) == ["ConfigMap/a"]
    assert plans.find("configmaps", "b") is not None


async def test_what_is_gone_already_is_not_planned_to_be_deleted(
    plans: Plans, platform: StartPlatform
) -> None:
    a, b = node("a", config_map("a")), node("b", config_map("b"), applyPolicy={"mode": "Create"})
    plans.want("web", a, b)
    async with platform():
        await plans.done("web")
        assert plans.api.call("DELETE", plans.path("configmaps", "b")).code == 200
        plans.rehearse("web", a)
        assert await plans.planned("web") == {}
        assert "1 unchanged" in plans.says("web")["message"]


async def test_a_change_that_the_brake_holds_is_said_to_be_held(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    a, b, c = (node(name, config_map(name)) for name in ("a", "b", "c"))
    plans.want("web", a, b, c)
    async with platform():
        await plans.done("web")
        plans.rehearse("web", a)
        planned = await plans.planned("web")
        assert {name: one[0] for name, one in planned.items()} == {"b": "Delete", "c": "Delete"}
        assert planned["b"][1].startswith("is held back: this change would delete 2 of 3 objects")
        assert "2 to delete if somebody agrees" in plans.says("web")["message"]
        file = written(tmp_path, {"nodes": [a]}, cueRef=inline(NODES))
        place = ("-n", plans.namespace)
        said = await asyncio.to_thread(pequod, "plan", file, *place, code=3)
        assert "is held back: this change would delete 2 of 3" in " ".join(said.stdout.split())
        way_out = promised(planned["b"]).partition(";")[0]
        assert way_out in await plans.refused("web", "PruneBlocked")
        command = planned["b"][1].partition("`")[2].partition("`")[0]
        plans.alter("web", dryRun=True)
        await plans.planned("web")
        plans.api.kubectl(*command.split()[1:])
        await until(lambda: "2 to delete, 1 unchanged" in plans.says("web")["message"])
        await plans.done("web")
    assert plans.find("configmaps", "b") is None


async def test_a_plan_goes_by_the_deletion_policy_that_is_asked_for_with_it(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    a, b = node("a", config_map("a")), node("b", config_map("b"))
    plans.want("web", a, b)
    async with platform():
        await plans.done("web")
        plans.rehearse("web", a, deletionPolicy="Orphan")
        assert await plans.planned("web") == {}
        assert "1 left behind" in plans.says("web")["message"]
        file = written(tmp_path, {"nodes": [a]}, cueRef=inline(NODES), deletionPolicy="Orphan")
        said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=1)
        assert f"leave ConfigMap/{plans.namespace}/b" in said.stdout
        await plans.done("web")
    assert plans.find("configmaps", "b") is not None


async def test_a_plan_is_made_in_the_identity_that_is_asked_for_with_it(
    plans: Plans, platform: StartPlatform, tenant: str
) -> None:
    plans.want("web", node("a", config_map("a", value="1")))
    async with platform() as running:
        await plans.done("web")
        changed = node("a", config_map("a", value="2"))
        plans.rehearse("web", changed)
        await plans.planned("web")
        plans.alter("web", serviceAccountName="nobody")
        await until(partial(plans.because, "web", "AccountNotFound"))
        assert "plan" not in plans.told("web"), "it was made in another identity"
        assert f"{plans.namespace}/nobody does not exist" in plans.says("web")["message"]
        running.journal.clear()
        plans.alter("web", serviceAccountName=tenant)
        assert (await plans.planned("web"))["a"][0] == "Update"
        asked = {one.user for one in running.journal.of("/configmaps/a")}
        assert asked == {f"system:serviceaccount:{plans.namespace}:{tenant}"}


async def test_what_is_only_observed_is_said_to_be_waited_for(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    observed = node("a", config_map("a"), applyPolicy={"mode": "Observe"})
    plans.want("web", observed, dryRun=True)
    async with platform():
        assert await plans.planned("web") == {}
        waited = f"dry run: 1 waited for (ConfigMap/{plans.namespace}/a);"
        assert plans.says("web")["message"].startswith(waited)
    file = written(tmp_path, {"nodes": [observed]}, cueRef=inline(NODES))
    place = ("-n", plans.namespace)
    said = await asyncio.to_thread(pequod, "plan", file, *place)
    assert f"? await ConfigMap/{plans.namespace}/a" in said.stdout
    plans.make("configmaps", config_map("a"))
    said = await asyncio.to_thread(pequod, "plan", file, *place)
    assert "1 unchanged" in said.stdout


async def test_what_is_mirrored_is_never_planned_to_be_made(
    plans: Plans, platform: StartPlatform
) -> None:
    named = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    adopt = {"strategy": "Mirror", "resources": [named]}
    plans.want("web", node("a", config_map("a")), adopt=adopt, dryRun=True)
    async with platform():
        assert await plans.planned("web") == {}
        assert "1 waited for" in plans.says("web")["message"]


async def test_replicas_that_are_left_to_others_are_not_planned_to_change(
    plans: Plans, platform: StartPlatform
) -> None:
    plans.want("web", node("app", deployment("app", replicas=3), readyWhen=EXISTS))
    async with platform():
        await plans.done("web")
        plans.rehearse("web", node("app", deployment("app", replicas=None), readyWhen=EXISTS))
        assert await plans.planned("web") == {}
        await plans.done("web")
    assert plans.live("apps/v1/deployments", "app")["spec"]["replicas"] == 3


async def test_what_somebody_deletes_is_planned_to_be_made_anew(
    plans: Plans, platform: StartPlatform
) -> None:
    held = config_map("a", metadata={"finalizers": ["example.com/hold"]})
    plans.make("configmaps", held)
    assert plans.api.call("DELETE", plans.path("configmaps", "a")).code == 200
    plans.want("web", node("a", config_map("a")), dryRun=True)
    async with platform():
        action, message = (await plans.planned("web"))["a"]
        assert action == "Create"
        assert "made anew when it is gone" in message
        free = {"metadata": {"finalizers": None}}
        assert plans.api.patch(plans.path("configmaps", "a"), free).code == 200
        await plans.done("web")
