"""`pequod plan`, `tree` and `rollback`, as somebody runs them in a terminal."""

import asyncio
from functools import partial
from pathlib import Path

import yaml

from commandline import Pequod
from graphs import Object, config_map, node
from transforms import StartPlatform, Transforms, written
from waiting import until


async def test_a_plan_ends_as_kubectl_diff_does(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    file = written(tmp_path, {"value": "a", "count": 2})
    new = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert f"+ create ConfigMap/{transforms.namespace}/web-0" in new.stdout
    assert "2 to create" in new.stdout
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    same = await asyncio.to_thread(pequod, "plan", file, *place)
    assert "2 unchanged" in same.stdout
    other = written(tmp_path, {"value": "b", "count": 1})
    changed = await asyncio.to_thread(pequod, "plan", other, *place, code=1)
    assert 'data.value: "a" -> "b"' in changed.stdout
    assert f"- delete ConfigMap/{transforms.namespace}/web-1" in changed.stdout
    wrong = written(tmp_path, {"value": "b", "count": 9})
    refused = await asyncio.to_thread(pequod, "plan", wrong, *place, code=3)
    assert "input.count" in refused.stderr
    assert transforms.value("web-0") == "a", "a plan changes nothing"


async def test_a_plan_of_nonsense_says_what_to_do(pequod: Pequod, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    for file, said in (
        (str(tmp_path / "other.yaml"), "holds no Transform"),
        (str(tmp_path / "nowhere.yaml"), "is not there"),
    ):
        done = await asyncio.to_thread(pequod, "plan", file, code=2)
        assert said in done.stderr
        assert done.stdout == ""


async def test_a_plan_of_what_the_api_server_would_not_take_says_why(
    transforms: Transforms, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    odd = {"type": "embedded", "ref": "Not A Name"}
    for file, said in (
        (written(tmp_path, {"value": "a"}, "typo", dryrun=True), 'unknown field "spec.dryrun"'),
        (written(tmp_path, {"value": "a"}, "Not_A_Name"), "metadata.name: Invalid value"),
        (written(tmp_path, {"value": "a"}, "rule", cueRef=odd), "is the name of a shipped module"),
        (written(tmp_path, {"value": "a"}, "number", rollbackTo=0), "rollbackTo"),
    ):
        done = await asyncio.to_thread(pequod, "plan", file, *place, code=2)
        assert said in " ".join(done.stderr.split())
        assert done.stdout == ""


async def test_a_plan_says_that_something_is_suspended(
    transforms: Transforms, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    file = written(tmp_path, {"value": "a"}, suspend=True)
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert "note: it is suspended: nothing of this happens" in done.stdout
    assert "1 to create" in done.stdout
    transforms.ask("web", {"value": "a"}, suspend=True)
    file = written(tmp_path, {"value": "a"})
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert "note: it is suspended on the cluster" in done.stdout
    file = written(tmp_path, {"value": "a"}, suspend=False)
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert "suspended" not in done.stdout


async def test_a_return_to_a_revision_is_said_and_not_planned_as_something_else(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    file = written(tmp_path, {"value": "b"}, rollbackTo=1)
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=2)
    assert "would return to revision 1 (spec.rollbackTo)" in done.stdout
    assert "update" not in done.stdout
    transforms.alter("web", rollbackTo=1)
    file = written(tmp_path, {"value": "b"})
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert 'data.value: "a" -> "b"' in done.stdout
    assert "note: spec.rollbackTo is 1 on the cluster" in done.stdout


async def test_an_agreement_to_deletions_is_known_to_the_command(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod, tmp_path: Path
) -> None:
    place = ("-n", transforms.namespace)
    transforms.ask("web", {"value": "a", "count": 3})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    file = written(tmp_path, {"value": "a", "count": 1})
    held = await asyncio.to_thread(pequod, "plan", file, *place, code=3)
    _, command, *_ = " ".join(held.stdout.split()).split("`")
    transforms.api.kubectl(*command.split()[1:])
    done = await asyncio.to_thread(pequod, "plan", file, *place, code=1)
    assert "2 to delete, 1 unchanged" in done.stdout


async def test_a_graph_that_nobody_answers_for_is_planned_to_be_refused(
    transforms: Transforms, pequod: Pequod
) -> None:
    graph: Object = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "ResourceGraph",
        "metadata": {"name": "by-hand"},
        "spec": {"nodes": [node("a", config_map("a"))]},
    }
    place = ("-n", transforms.namespace)
    refused = await asyncio.to_thread(
        pequod, "plan", "-", *place, stdin=yaml.safe_dump(graph), code=3
    )
    assert "spec.serviceAccountName" in refused.stdout
    graph["spec"] |= {"serviceAccountName": "tenant", "suspend": True}
    done = await asyncio.to_thread(pequod, "plan", "-", *place, stdin=yaml.safe_dump(graph), code=1)
    assert "1 to create" in done.stdout
    assert "it is suspended" in done.stdout


async def test_a_tree_shows_the_source_its_graph_and_every_object(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod
) -> None:
    place = ("-n", transforms.namespace)
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    drawn = await asyncio.to_thread(pequod, "tree", "transform/web", *place)
    lines = [line.strip(" │├└─") for line in drawn.stdout.splitlines()]
    assert lines[0] == "Transform/web  Ready  2 objects ready"
    assert lines[1] == "ResourceGraph/transform-web  Ready  2 objects ready"
    assert [line.split()[0] for line in lines[2:]] == ["ConfigMap/web-0", "ConfigMap/web-1"]
    alone = await asyncio.to_thread(pequod, "tree", "rg/transform-web", *place)
    assert alone.stdout.startswith("ResourceGraph/transform-web  Ready")
    absent = await asyncio.to_thread(pequod, "tree", "tf/nothing", *place, code=1)
    assert '"nothing" not found' in absent.stderr
    odd = await asyncio.to_thread(pequod, "tree", "pod/web", *place, code=2)
    assert "Write transform/NAME" in odd.stderr


async def test_a_watched_tree_is_drawn_anew_until_somebody_ends_it(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        with pequod.running("tree", "tf/web", "--watch", "-n", transforms.namespace) as watching:
            await asyncio.to_thread(watching.wait_for, "Transform/web  Ready  1 object ready")
            transforms.alter("web", input={"value": "a", "count": 2})
            await asyncio.to_thread(watching.wait_for, "Transform/web  Ready  2 objects ready")
            assert watching.interrupt() in {0, 130}
    assert "Traceback" not in watching.said


async def test_a_rollback_goes_to_the_last_good_revision_and_forward_again(
    transforms: Transforms, platform: StartPlatform, pequod: Pequod
) -> None:
    place = ("-n", transforms.namespace)
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        first = await asyncio.to_thread(pequod, "rollback", "web", *place, code=1)
        assert "no earlier revision" in first.stderr
        transforms.alter("web", input={"value": "b"})
        await until(partial(transforms.is_done, "web"))
        done = await asyncio.to_thread(pequod, "rollback", "transform/web", *place)
        assert "returns to revision 1" in done.stdout
        await until(lambda: transforms.value("web-0") == "a")
        await asyncio.to_thread(pequod, "rollback", "web", *place, "--forward")
        await until(lambda: transforms.value("web-0") == "b")
        named = await asyncio.to_thread(pequod, "rollback", "web", *place, "--to=7", code=1)
    assert "There are: 2, 1." in named.stderr
