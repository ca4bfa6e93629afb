"""From a module and an input to live objects, and back."""

from functools import partial

from pequod.sources.resolver import Reference
from transforms import MAPS, StartPlatform, Transforms
from waiting import until

POLICIES = Reference(type="embedded", ref="policy")


async def test_a_transform_becomes_a_graph_that_it_owns_and_ready_objects(
    transforms: Transforms, platform: StartPlatform
) -> None:
    uid = transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    status = transforms.told("web")
    assert status["phase"] == "Ready"
    assert status["resourceGraphRef"]["name"] == "transform-web"
    assert status["resolvedCueRef"]["digest"].startswith("sha256:")
    graph = transforms.get("transform-web")
    assert graph["metadata"]["ownerReferences"][0]["uid"] == uid
    assert graph["spec"]["sourceRef"]["uid"] == uid
    assert "pequod.io/transform" in transforms.transform("web")["metadata"]["finalizers"]
    assert transforms.value("web-0") == transforms.value("web-1") == "a"
    events = transforms.events("web")
    assert {event["reason"] for event in events} - {"Rendered"} == {"Ready"}
    assert any("revision 1: 2 objects" in event["note"] for event in events)


async def test_a_change_of_the_input_changes_the_objects_and_is_another_revision(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b", "count": 2})
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "b"
    assert transforms.revisions("web") == [2, 1]
    assert [one["revision"] for one in transforms.kept()] == [1, 2]


async def test_nothing_is_written_while_nothing_changes_and_nothing_after_a_restart(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
    before = transforms.transform("web")["metadata"]["resourceVersion"]
    graph = transforms.get("transform-web")["metadata"]["resourceVersion"]
    async with platform() as again:
        transforms.ask("probe", {"value": "p"})
        await until(partial(transforms.is_done, "probe"))
        written = [one for one in again.journal.asked if one.writes and not one.is_question]
        assert not [one for one in written if "/transforms/web" in one.place]
        assert not [one for one in written if "transform-web" in one.place]
    assert transforms.transform("web")["metadata"]["resourceVersion"] == before
    assert transforms.get("transform-web")["metadata"]["resourceVersion"] == graph


async def test_an_input_that_is_wrong_changes_nothing_and_says_what_to_do(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    transforms.ask("new", {"value": 7, "count": 9})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b", "count": 6})
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        await until(partial(transforms.because, "new", "Violated", "Validated"))
    (found,) = transforms.told("web")["violations"]
    assert found["path"] == "input.count"
    assert found["severity"] == "Error"
    assert "module.cue:" in found["message"]
    assert "stays as it is" in transforms.says("web")["message"]
    assert transforms.value("web-0") == "a"
    paths = {one["path"] for one in transforms.told("new")["violations"]}
    assert paths == {"input.value", "input.count"}
    assert not transforms.exists("transform-new")
    assert not [one for one in transforms.kept() if "new" in one["metadata"]["name"]]
    reasons = [event["reason"] for event in transforms.events("new")]
    assert "Violated" in reasons


async def test_a_module_that_is_broken_keeps_what_runs_and_names_file_and_line(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        broken = MAPS.replace("value: input.value", "value: input.valu")
        transforms.alter("web", cueRef={"type": "inline", "ref": broken})
        await until(partial(transforms.because, "web", "InvalidModule", "Rendered"))
    message = transforms.says("web")["message"]
    assert "module.cue:" in message
    assert "what runs stays as it is" in message
    assert transforms.value("web-0") == "a"


async def test_policies_block_before_anything_is_created_and_overrides_need_leave(
    transforms: Transforms, platform: StartPlatform
) -> None:
    service = {"type": "embedded", "ref": "webservice"}
    given = {"image": "example.com/app:latest", "resources": {"requests": {"memory": "100Gi"}}}
    transforms.ask("web", given, cueRef=service)
    transforms.ask("sly", given, cueRef=service, policies=[{"name": "security"}])
    async with platform(policies=POLICIES):
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        await until(partial(transforms.because, "sly", "OverrideRefused", "Validated"))
        found = {one["severity"]: one for one in transforms.told("web")["violations"]}
        assert "policy resource-limits" in found["Error"]["message"]
        assert "policy image-tags" in found["Warning"]["message"]
        assert not transforms.exists("transform-web")
        assert "policy security cannot be overridden" in transforms.says("sly")["message"]
        limits = {"name": "resource-limits", "parameters": {"maxMemory": "200Gi"}}
        tags = {"name": "image-tags", "action": "Ignore"}
        transforms.alter("web", policies=[limits, tags])
        await until(lambda: transforms.exists("transform-web"))
        await until(lambda: "policy" not in str(transforms.told("web").get("violations")))
    (left,) = transforms.told("web")["violations"]
    assert left["severity"] == "Warning", "what the module itself says of the tag"


async def test_what_keeps_a_rendering_from_being_stored_says_that_what_runs_stays(
    transforms: Transforms, platform: StartPlatform
) -> None:
    module = MAPS.replace("int & >=1", "int & >=0")
    transforms.ask("web", {"value": "a"}, cueRef={"type": "inline", "ref": module})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "a", "count": 0})
        await until(partial(transforms.because, "web", "InvalidGraph", "Validated"))
        assert "what runs stays as it is" in transforms.says("web")["message"]
        assert transforms.says("web")["message"] == transforms.says("web", "Validated")["message"]
        transforms.alter("web", input={"value": "a", "count": 1}, policies=[{"name": "unheard-of"}])
        await until(partial(transforms.because, "web", "OverrideRefused", "Validated"))
        assert "what runs stays as it is" in transforms.says("web")["message"]
    assert transforms.value("web-0") == "a"


async def test_violations_are_those_of_what_is_asked_for_now(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    wrong = {"value": "b", "count": 6}
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input=wrong)
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        transforms.alter("web", rollbackTo=1)
        await until(partial(transforms.is_done, "web"))
        assert "violations" not in transforms.told("web")
        transforms.alter("web", rollbackTo=None)
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        override = [{"name": "unheard-of"}]
        transforms.alter("web", input={"value": "b", "count": 1}, policies=override)
        await until(partial(transforms.because, "web", "OverrideRefused", "Validated"))
    assert "violations" not in transforms.told("web")


async def test_deleting_a_transform_takes_everything_with_it(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 3})
    transforms.ask("kept", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        await until(partial(transforms.is_done, "kept"))
        transforms.alter("kept", deletionPolicy="Orphan")
        transforms.end("web")
        transforms.end("kept")
        await until(partial(transforms.is_gone, "web"))
        await until(partial(transforms.is_gone, "kept"))
    assert transforms.find("configmaps", "web-0") is None
    assert transforms.find("configmaps", "kept-0") is not None
    assert not transforms.exists("transform-web")
    await until(lambda: not transforms.kept())


async def test_secrets_are_kept_apart_and_nowhere_else(
    transforms: Transforms, platform: StartPlatform
) -> None:
    canary = "correct-horse-battery"
    module = MAPS.replace('kind:       "ConfigMap"', 'kind:       "Secret"').replace(
        "data: value:", "stringData: value:"
    )
    transforms.ask("web", {"value": canary}, cueRef={"type": "inline", "ref": module})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": f"{canary}-2"})
        await until(partial(transforms.is_done, "web"))
    graph = transforms.get("transform-web")
    assert canary not in str(graph)
    assert canary not in str(transforms.kept())
    assert canary not in str(transforms.told("web"))
    assert canary not in str(transforms.events("web"))
    names = [
        item["metadata"]["name"]
        for item in transforms.api.get(transforms.path("secrets")).body["items"]
    ]
    assert len([name for name in names if name.startswith("transform-web-")]) == 2


async def test_a_suspended_transform_rests_with_its_graph(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", suspend=True, input={"value": "b"})
        await until(lambda: transforms.get("transform-web")["spec"].get("suspend") is True)
        assert transforms.value("web-0") == "a"
        transforms.alter("web", suspend=False)
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "b"


async def test_a_name_that_is_taken_is_not_taken_over(
    transforms: Transforms, platform: StartPlatform, tenant: str
) -> None:
    transforms.create(
        "transform-web",
        {
            "id": "a",
            "object": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "mine"},
                "data": {"a": "b"},
            },
        },
        serviceAccountName=tenant,
    )
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.because, "web", "AlreadyExists", "Rendered"))
        await until(partial(transforms.is_ready, "transform-web"))
    assert transforms.find("configmaps", "mine") is not None


async def test_a_namespace_chooses_its_policies_by_its_label(
    transforms: Transforms, platform: StartPlatform
) -> None:
    given = {"image": "example.com/app:1.0.0", "resources": {"requests": {"memory": "100Gi"}}}
    transforms.ask("web", given, cueRef={"type": "embedded", "ref": "webservice"})
    place = f"/api/v1/namespaces/{transforms.namespace}"
    label = {"metadata": {"labels": {"pequod.io/policies": "unheard-of"}}}
    async with platform():
        await until(lambda: transforms.exists("transform-web"))
        assert transforms.api.patch(place, label).code == 200
        await until(partial(transforms.because, "web", "UnknownPolicies", "Validated"))
        label["metadata"]["labels"]["pequod.io/policies"] = "strict"
        assert transforms.api.patch(place, label).code == 200
        await until(partial(transforms.because, "web", "Violated", "Validated"))
    assert transforms.exists("transform-web"), "what runs stays"


async def test_a_canary_is_refused_until_it_is_there(
    transforms: Transforms, platform: StartPlatform
) -> None:
    rollout = {"strategy": "Canary", "steps": [{"setWeight": 10}]}
    transforms.ask("web", {"value": "a"}, rollout=rollout)
    async with platform():
        await until(partial(transforms.because, "web", "Unsupported"))
    assert not transforms.exists("transform-web")
