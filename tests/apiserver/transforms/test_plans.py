"""What would be done, without doing it."""

from functools import partial

from transforms import MAPS, StartPlatform, Transforms
from waiting import until


async def test_a_dry_run_of_a_new_transform_creates_nothing(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2}, dryRun=True)
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
    plan = transforms.told("web")["plan"]
    assert [(one["action"], one["object"]["name"]) for one in plan["changes"]] == [
        ("Create", "web-0"),
        ("Create", "web-1"),
    ]
    assert not transforms.exists("transform-web")
    assert transforms.find("configmaps", "web-0") is None


async def test_a_dry_run_shows_changes_field_by_field_and_what_goes(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", dryRun=True, input={"value": "b", "count": 1})
        await until(partial(transforms.because, "web", "DryRun"))
        changes = {one["object"]["name"]: one for one in transforms.told("web")["plan"]["changes"]}
        assert changes["web-0"]["action"] == "Update"
        assert 'data.value: "a" -> "b"' in changes["web-0"]["message"]
        assert changes["web-1"]["action"] == "Delete"
        assert transforms.value("web-0") == "a"
        assert "1 to change, 1 to delete" in transforms.says("web")["message"]
        transforms.alter("web", dryRun=False)
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "b"
    assert "plan" not in transforms.told("web")


async def test_a_plan_names_what_would_be_refused_and_hides_secrets(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.make("configmaps", {"metadata": {"name": "web-0"}, "data": {"by": "others"}})
    module = MAPS.replace('kind:       "ConfigMap"', 'kind:       "Secret"').replace(
        "data: value:", "stringData: value:"
    )
    transforms.ask("web", {"value": "a"}, dryRun=True)
    transforms.ask("hush", {"value": "canary"}, cueRef={"type": "inline", "ref": module})
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
        (change,) = transforms.told("web")["plan"]["changes"]
        assert "would be refused: ConfigMap" in change["message"]
        assert "exists already" in change["message"]
        await until(partial(transforms.is_done, "hush"))
        transforms.alter("hush", dryRun=True, input={"value": "canary-2"})
        await until(partial(transforms.because, "hush", "DryRun"))
    (change,) = transforms.told("hush")["plan"]["changes"]
    assert "data.value" in change["message"]
    assert "canary" not in str(transforms.told("hush"))


async def test_a_plan_shows_what_is_adopted_and_what_would_be_removed_from_it(
    transforms: Transforms, platform: StartPlatform
) -> None:
    path = f"{transforms.path('configmaps')}?fieldManager=kubectl-client-side-apply"
    old = {"metadata": {"name": "web-0"}, "data": {"value": "old", "left": "over"}}
    assert transforms.api.call("POST", path, old).code == 201
    adopt = {"resources": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "web-0"}]}
    transforms.ask("web", {"value": "a", "count": 2}, dryRun=True, adopt=adopt)
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
        adopted, created = transforms.told("web")["plan"]["changes"]
        assert (adopted["action"], created["action"]) == ("Adopt", "Create")
        assert 'data.left: removed "over"' in adopted["message"]
        assert "kubectl-client-side-apply" in adopted["message"]
        transforms.alter("web", dryRun=False)
        await until(partial(transforms.is_done, "web"))
    assert transforms.live("configmaps", "web-0")["data"] == {"value": "a"}


async def test_a_dry_run_holds_a_rollback_back(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b"})
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", dryRun=True, rollbackTo=1)
        await until(partial(transforms.because, "web", "DryRun"))
        assert transforms.value("web-0") == "b"
        transforms.alter("web", dryRun=False)
        await until(lambda: transforms.value("web-0") == "a")


async def test_a_plan_goes_with_the_dry_run_although_the_input_is_wrong_by_then(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"}, dryRun=True)
    async with platform():
        await until(partial(transforms.because, "web", "DryRun"))
        assert "plan" in transforms.told("web")
        transforms.alter("web", dryRun=False, input={"value": 7})
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        assert "plan" not in transforms.told("web")
        transforms.alter("web", dryRun=True, input={"value": "b"})
        await until(partial(transforms.because, "web", "DryRun"))
        transforms.alter("web", input={"value": 7})
        await until(partial(transforms.because, "web", "Violated", "Validated"))
    assert "plan" not in transforms.told("web"), "it was one of another input"
