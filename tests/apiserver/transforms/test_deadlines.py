"""The time that a new revision has: what counts, and that nothing stands in the way of its end."""

from datetime import UTC, datetime, timedelta
from functools import partial

from transforms import STUCK, StartPlatform, Transforms
from waiting import until

LATER = {"autoRollback": True, "deadline": "6s"}
DEADLINE = timedelta(seconds=6)
GRAPH = "transform-web"


async def fail(transforms: Transforms) -> None:
    """Have a first revision Ready, and a second one that does not become so."""
    reference = {"type": "inline", "ref": STUCK}
    transforms.ask("web", {"value": "a"}, cueRef=reference, rollout=LATER)
    await until(partial(transforms.is_done, "web"))
    transforms.alter("web", input={"value": "bad"})
    await until(lambda: transforms.value("web-0") == "bad")


async def test_a_revision_is_given_up_although_the_input_has_become_invalid(
    transforms: Transforms, platform: StartPlatform
) -> None:
    async with platform():
        await fail(transforms)
        transforms.alter("web", input={"value": 7})
        await until(partial(transforms.because, "web", "Violated", "Validated"))
        await until(lambda: transforms.value("web-0") == "a")
        await until(lambda: "revision 2 was given up" in transforms.says("web")["message"])
    assert transforms.because("web", "Violated")
    assert "revision 1 stays" in transforms.says("web")["message"]
    assert transforms.told("web")["violations"][0]["path"] == "input.value"
    assert transforms.told("web")["revisions"][0]["failed"] is True
    assert any(event["reason"] == "RolledBack" for event in transforms.events("web"))


async def test_a_revision_is_given_up_although_only_a_plan_is_asked_for(
    transforms: Transforms, platform: StartPlatform
) -> None:
    async with platform():
        await fail(transforms)
        transforms.alter("web", input={"value": "b"}, dryRun=True, deletionPolicy="Orphan")
        await until(partial(transforms.because, "web", "DryRun"))
        await until(lambda: transforms.value("web-0") == "a")
        await until(partial(transforms.is_ready, GRAPH))
    assert transforms.because("web", "DryRun")
    assert transforms.revisions("web") == [2, 1], "what is planned is not stored"
    assert transforms.get(GRAPH)["spec"]["deletionPolicy"] == "Delete"


async def test_a_suspension_does_not_count(transforms: Transforms, platform: StartPlatform) -> None:
    async with platform():
        await fail(transforms)
        transforms.alter("web", suspend=True)
        await until(lambda: transforms.get(GRAPH)["spec"].get("suspend") is True)
        began = transforms.rendered_at(GRAPH)
        await until(lambda: datetime.now(UTC) > began + DEADLINE)
        transforms.alter("web", suspend=False)
        await until(lambda: not transforms.get(GRAPH)["spec"].get("suspend"))
        resumed = transforms.rendered_at(GRAPH)
        assert transforms.get(GRAPH)["spec"]["nodes"][0]["object"]["data"]["value"] == "bad"
        await until(partial(transforms.because, "web", "RolledBack"))
    assert transforms.rendered_at(GRAPH) >= resumed + DEADLINE, "it had all of its time again"


async def test_a_revision_that_became_ready_while_the_operator_was_away_is_not_given_up(
    transforms: Transforms, platform: StartPlatform
) -> None:
    async with platform():
        await fail(transforms)
        await until(lambda: transforms.status(GRAPH).get("observedGeneration") == 2)
    began = transforms.rendered_at(GRAPH)
    transforms.edit("configmaps", "web-0", {"metadata": {"annotations": {"well": "yes"}}})
    await until(lambda: datetime.now(UTC) > began + DEADLINE)
    async with platform():
        await until(lambda: transforms.told("web")["revisions"][0].get("ready") is True)
        await until(partial(transforms.is_done, "web"))
    assert transforms.value("web-0") == "bad"
    assert transforms.told("web")["revisions"][0]["failed"] is False
    assert not [event for event in transforms.events("web") if event["reason"] == "RolledBack"]


async def test_a_revision_that_is_still_not_ready_when_the_operator_returns_is_given_up(
    transforms: Transforms, platform: StartPlatform
) -> None:
    async with platform():
        await fail(transforms)
    began = transforms.rendered_at(GRAPH)
    await until(lambda: datetime.now(UTC) > began + DEADLINE)
    async with platform():
        await until(partial(transforms.because, "web", "RolledBack"))
    assert transforms.value("web-0") == "a"
