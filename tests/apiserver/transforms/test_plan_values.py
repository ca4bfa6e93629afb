"""Plans of nodes that take values from others: known where their sources stay as they are."""

import asyncio
from pathlib import Path

from commandline import Pequod
from graphs import config_map, node, object_
from transforms import NODES, Plans, StartPlatform, inline, written
from waiting import until

DB = node("db", config_map("db", host="here"))


def app(expression: str = "nodes.db.data.host", **more: str) -> dict[str, object]:
    data = {"url": f"http://${{{expression}}}", **more}
    return node("app", object_("v1", "ConfigMap", "app", data=data))


async def test_nothing_is_planned_for_values_that_stay_as_they_are(
    plans: Plans, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    plans.want("web", DB, app())
    async with platform():
        await plans.done("web")
        plans.rehearse("web", DB, app())
        assert await plans.planned("web") == {}
        assert "2 unchanged" in plans.says("web")["message"]
    place = ("-n", plans.namespace)
    file = written(tmp_path, {"nodes": [DB, app()]}, cueRef=inline(NODES))
    same = await asyncio.to_thread(pequod, "plan", file, *place)
    assert "2 unchanged" in same.stdout
    file = written(tmp_path, {"nodes": [DB, app(more="b")]}, cueRef=inline(NODES))
    other = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert 'data.more: added "b"' in other.stdout
    assert "data.url" not in other.stdout


async def test_values_of_what_changes_itself_are_left_open(
    plans: Plans, platform: StartPlatform
) -> None:
    last = node("last", config_map("last", url="${nodes.app.data.url}"))
    plans.want("web", DB, app(), last)
    async with platform():
        await plans.done("web")
        plans.rehearse("web", node("db", config_map("db", host="there")), app(), last)
        planned = await plans.planned("web")
        assert 'data.host: "here" -> "there"' in planned["db"][1]
        for name in ("app", "last"):
            assert planned[name] == (
                "Update",
                "values of other nodes are filled in when it is applied",
            )


async def test_a_value_that_cannot_be_filled_in_is_planned_as_it_is_executed(
    plans: Plans, platform: StartPlatform
) -> None:
    plans.want("web", DB)
    async with platform():
        await plans.done("web")
        plans.rehearse("web", DB, app("nodes.db.data.port"))
        planned = (await plans.planned("web"))["app"]
        assert planned[0] == "Create"
        assert "waits for ${nodes.db.data.port} (at data.url): no such field yet" in planned[1]
        plans.alter("web", input={"nodes": [DB, app("nodes.db.data")]})
        await until(lambda: "map" in plans.told("web")["plan"]["changes"][0]["message"])
        planned = (await plans.planned("web"))["app"]
        assert planned[1].startswith("would be refused: ")
        said = await plans.refused("web", "InvalidExpression")
        assert planned[1].partition(": ")[2] in said


async def test_the_command_does_not_plan_for_another_cluster(
    plans: Plans, pequod: Pequod, tmp_path: Path
) -> None:
    file = written(tmp_path, {"value": "a"}, clusterRef={"name": "far"})
    said = await asyncio.to_thread(pequod, "plan", file, "-n", plans.namespace, code=2)
    assert "would be executed on Cluster far" in " ".join(said.stdout.split() + said.stderr.split())
