"""What a Transform asks of the API server besides its objects: each thing once."""

from functools import partial

import pytest

from clusters import Api
from graphs import grant_writing
from pequod.controllers.frontend import handover
from transforms import MAPS, StartPlatform, Transforms
from waiting import until

SECRETS = MAPS.replace('kind:       "ConfigMap"', 'kind:       "Secret"').replace(
    "data: value:", "stringData: value:"
)
MODULE = {"type": "inline", "ref": SECRETS}


def reads_of_parts(transforms: Transforms, asked: list[str]) -> list[str]:
    return [place for place in asked if f"/{transforms.namespace}/secrets/transform-" in place]


async def test_a_sensitive_part_that_was_just_stored_is_not_read_back(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"}, cueRef=MODULE)
    async with platform() as running:
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b"})
        await until(partial(transforms.is_done, "web"))
        asked = [one.place for one in running.journal.asked if one.method == "GET"]
    assert reads_of_parts(transforms, asked) == []
    assert transforms.live("secrets", "web-0")["data"] == {"value": "Yg=="}


async def test_a_sensitive_part_that_nobody_has_handed_over_is_read_in_the_tenants_name(
    transforms: Transforms, platform: StartPlatform, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover.Handover, "of", lambda _self, _graph: {})
    transforms.ask("web", {"value": "a"}, cueRef=MODULE, serviceAccountName=tenant)
    async with platform() as running:
        await until(partial(transforms.is_done, "web"))
        reads = [one for one in running.journal.asked if one.method == "GET" and not one.is_watch]
    (read,) = [one for one in reads if reads_of_parts(transforms, [one.place])]
    assert read.user == f"system:serviceaccount:{transforms.namespace}:{tenant}"
    assert transforms.live("secrets", "web-0")["data"] == {"value": "YQ=="}


async def test_a_tenant_who_may_not_read_the_sensitive_part_is_told_before_anything_is_made(
    transforms: Transforms, platform: StartPlatform, api: Api
) -> None:
    """Whether the part is handed over or read must not make a difference to anybody."""
    writer = grant_writing(api, transforms.namespace, "secrets")
    transforms.ask("web", {"value": "a"}, cueRef=MODULE, serviceAccountName=writer)
    async with platform():
        await until(partial(transforms.because, "web", "Forbidden"))
    assert "get" in transforms.says("web")["message"]
    assert transforms.find("secrets", "web-0") is None


async def test_one_event_tells_that_a_new_transform_is_ready_and_names_its_objects(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        await until(lambda: bool(transforms.events("web")))
    (event,) = [one for one in transforms.events("web") if one["reason"] == "Ready"]
    assert event["note"] == (
        "revision 1: 2 objects rendered; 2 objects ready; "
        f"applied: ConfigMap/{transforms.namespace}/web-0, ConfigMap/{transforms.namespace}/web-1"
    )
    assert transforms.events("transform-web") == []


async def test_a_change_is_told_with_the_objects_that_it_was_applied_to(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 1})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "a", "count": 2})
        await until(partial(transforms.is_done, "web"))
        await until(lambda: bool(transforms.events("transform-web")))
    (event,) = transforms.events("transform-web")
    assert event["reason"] == "Applied"
    assert event["note"] == f"applied: ConfigMap/{transforms.namespace}/web-1"


async def test_a_transform_that_is_deleted_deletes_each_thing_once_and_tells_once(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform() as running:
        await until(partial(transforms.is_done, "web"))
        running.journal.clear()
        transforms.end("web")
        await until(partial(transforms.is_gone, "web"))
        await until(lambda: bool(transforms.events("transform-web")))
        asked = [one for one in running.journal.asked if not one.is_watch]
    # The watch may tell of the graph's deletion before its answer does: then it is looked at.
    assert len([one for one in asked if one.method == "GET"]) <= 1
    assert len([one for one in asked if one.method == "DELETE"]) == 3
    assert len([one for one in asked if one.is_event]) == 1
    assert transforms.find("configmaps", "web-0") is None
