"""Going back: to a revision that somebody names, or to the last one that was Ready."""

from functools import partial

from transforms import MAPS, STUCK, StartPlatform, Transforms
from waiting import until

SOON = {"autoRollback": True, "deadline": "2s"}


async def test_rollback_to_a_revision_stays_there_until_it_is_taken_back(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a", "count": 2})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b", "count": 1})
        await until(partial(transforms.is_done, "web"))
        assert transforms.find("configmaps", "web-1") is None
        transforms.alter("web", rollbackTo=1)
        await until(lambda: transforms.is_done("web") and transforms.value("web-0") == "a")
        assert transforms.value("web-1") == "a"
        assert "revision 1" in transforms.says("web")["message"]
        transforms.alter("web", input={"value": "c", "count": 1})
        await until(partial(transforms.is_done, "web"))
        assert transforms.value("web-0") == "a"
        transforms.alter("web", rollbackTo=None)
        await until(lambda: transforms.is_done("web") and transforms.value("web-0") == "c")
    assert transforms.revisions("web") == [3, 2, 1]


async def test_a_revision_is_returned_to_although_its_module_is_gone(
    transforms: Transforms, platform: StartPlatform
) -> None:
    module = {"metadata": {"name": "maps"}, "data": {"module.cue": MAPS}}
    transforms.make("configmaps", module)
    reference = {"type": "configmap", "ref": "maps"}
    transforms.ask("web", {"value": "a"}, cueRef=reference)
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "b"})
        await until(partial(transforms.is_done, "web"))
        transforms.remove("configmaps", "maps")
        await until(partial(transforms.because, "web", "SourceMissing", "Fetched"))
        assert transforms.value("web-0") == "b"
        transforms.alter("web", rollbackTo=1)
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "a"


async def test_a_revision_that_does_not_exist_is_named_and_changes_nothing(
    transforms: Transforms, platform: StartPlatform
) -> None:
    transforms.ask("web", {"value": "a"})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", rollbackTo=7)
        await until(partial(transforms.because, "web", "RevisionNotFound", "Rendered"))
    assert "there are 1" in transforms.says("web")["message"]
    assert transforms.value("web-0") == "a"


async def test_a_revision_that_is_not_ready_in_time_is_given_up_for_the_last_good_one(
    transforms: Transforms, platform: StartPlatform
) -> None:
    reference = {"type": "inline", "ref": STUCK}
    transforms.ask("web", {"value": "a"}, cueRef=reference, rollout=SOON)
    async with platform():
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "bad"})
        await until(partial(transforms.because, "web", "RolledBack"))
        assert transforms.value("web-0") == "a"
        newest, first = transforms.told("web")["revisions"]
        assert (newest["failed"], newest["ready"], first["ready"]) == (True, False, True)
        assert any(event["reason"] == "RolledBack" for event in transforms.events("web"))
    async with platform() as again:
        transforms.ask("probe", {"value": "p"})
        await until(partial(transforms.is_done, "probe"))
        assert not again.journal.writes("/configmaps/web"), "given up is given up"
        transforms.alter("web", input={"value": "good"})
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "good"


async def test_a_rollback_target_that_fails_stops_and_never_loops(
    transforms: Transforms, platform: StartPlatform, tenant: str
) -> None:
    """What the good revision needs is gone by the time it is returned to."""
    reference = {"type": "inline", "ref": STUCK}
    transforms.ask(
        "web", {"value": "a", "count": 2}, cueRef=reference, rollout=SOON, serviceAccountName=tenant
    )
    async with platform() as running:
        await until(partial(transforms.is_done, "web"))
        transforms.alter("web", input={"value": "bad", "count": 1})
        await until(lambda: transforms.find("configmaps", "web-1") is None)
        transforms.make("configmaps", {"metadata": {"name": "web-1"}, "data": {"by": "others"}})
        await until(partial(transforms.because, "web", "AlreadyExists", "Executed"))
        await until(partial(transforms.because, "web", "RollbackFailed"))
        running.journal.clear()
        transforms.ask("probe", {"value": "p"})
        await until(partial(transforms.is_done, "probe"))
        assert not [one for one in running.journal.writes() if "/configmaps/web-0" in one.place]
    marks = [(one["revision"], one["failed"]) for one in transforms.told("web")["revisions"]]
    assert marks == [(2, True), (1, False)]


async def test_ten_revisions_are_kept_and_what_is_in_use_among_them(
    transforms: Transforms, platform: StartPlatform
) -> None:
    module = MAPS.replace('kind:       "ConfigMap"', 'kind:       "Secret"').replace(
        "data: value:", "stringData: value:"
    )
    transforms.ask("web", {"value": "0"}, cueRef={"type": "inline", "ref": module})
    async with platform():
        await until(partial(transforms.is_done, "web"))
        for number in range(1, 12):
            transforms.alter("web", input={"value": str(number)})
            await until(partial(transforms.is_done, "web"))
        await until(lambda: len(transforms.kept()) == 10)
    assert transforms.revisions("web") == [*range(12, 2, -1)]
    secrets = transforms.api.get(transforms.path("secrets")).body["items"]
    kept = [one for one in secrets if one["metadata"]["name"].startswith("transform-web-")]
    assert len(kept) == 10
