"""`pequod plan`, `tree` and `rollback`, as somebody runs them in a terminal."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import yaml

from clusters import SharedControlPlane
from commandline import Pequod
from transforms import MAPS, StartPlatform, Transforms
from waiting import until


@pytest.fixture
def pequod(control_plane: SharedControlPlane, tmp_path: Path) -> Pequod:
    return Pequod(tmp_path, control_plane.api.kubeconfig)


def written(folder: Path, given: dict[str, object], name: str = "web") -> str:
    """A Transform in a file, without a namespace."""
    path = folder / f"{name}.yaml"
    document = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": name},
        "spec": {"cueRef": {"type": "inline", "ref": MAPS}, "input": given},
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


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
