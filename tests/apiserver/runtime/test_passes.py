"""One pass over an object: what it writes, when it is repeated, and when it is left alone."""

import asyncio
from functools import partial

from pequod.api import reasons
from pequod.kube.errors import UnreachableError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Result, Stalled, Waiting
from waiting import until
from widgets import (
    HeldWidgetReconciler,
    Start,
    Widget,
    WidgetReconciler,
    Widgets,
    build,
    is_ready,
)

REQUESTED = "reconcile.pequod.io/requestedAt"


def has_ready(widgets: Widgets, name: str) -> bool:
    return widgets.condition(name, "Ready") != {}


async def test_success_is_published_with_every_condition_in_one_patch(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("one", {"size": 3})
    async with started(WidgetReconciler()):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
    found = widgets.get("one")
    assert found is not None
    status = found["status"]
    assert status["observedGeneration"] == 1
    assert status["size"] == 3
    assert [c["type"] for c in status["conditions"]] == ["Fetched", "Built", "Ready"]
    assert all(c["observedGeneration"] == 1 for c in status["conditions"])
    writers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
    assert "pequod-operator" in writers


async def test_our_own_status_does_not_wake_us_and_an_unchanged_one_is_not_written(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("one")
    reconciler = WidgetReconciler()
    async with started(reconciler) as controller:
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        version = widgets.get("one")["metadata"]["resourceVersion"]  # type: ignore[index]
        assert reconciler.count("one") == 1
        controller.wake(Key(widgets.namespace, "one"))
        await until(lambda: reconciler.count("one") == 2)
        widgets.create("two")
        await until(lambda: widgets.condition("two", "Ready").get("status") == "True")
        assert widgets.get("one")["metadata"]["resourceVersion"] == version  # type: ignore[index]
        assert reconciler.count("one") == 2


async def test_a_change_is_followed_and_the_new_generation_is_spoken_of(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("one")
    async with started(WidgetReconciler()):
        await until(lambda: widgets.status("one").get("size") == 1)
        widgets.patch("one", {"spec": {"size": 5}})
        await until(lambda: widgets.status("one").get("size") == 5)
        assert widgets.status("one")["observedGeneration"] == 2
        assert widgets.condition("one", "Built")["message"] == "size 5"


async def test_a_change_that_comes_while_a_pass_runs_is_not_lost(
    widgets: Widgets, started: Start
) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(widget: Widget, ctx: Context) -> Result:
        entered.set()
        await go_on.wait()
        return await build(widget, ctx)

    widgets.create("one")
    async with started(WidgetReconciler(slowly)):
        await asyncio.wait_for(entered.wait(), 20)
        widgets.patch("one", {"spec": {"size": 9}})
        go_on.set()
        await until(lambda: widgets.status("one").get("size") == 9)
        await until(lambda: widgets.status("one")["observedGeneration"] == 2)


async def test_waiting_says_for_what_and_looks_again_when_it_said(
    widgets: Widgets, started: Start
) -> None:
    asked = 0

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        nonlocal asked
        asked += 1
        with ctx.step("Fetched"):
            if asked == 1:
                raise Waiting(reasons.SECRET_NOT_FOUND, "no Secret; create it", after=0.1)
        return await build(widget, ctx)

    widgets.create("one")
    reconciler = WidgetReconciler(behaviour)
    async with started(reconciler):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
    assert reconciler.count("one") == 2
    assert widgets.condition("one", "Reconciling") == {}


async def test_stalled_is_not_repeated_until_the_object_changes(
    widgets: Widgets, started: Start
) -> None:
    async def behaviour(widget: Widget, ctx: Context) -> Result:
        if widget.spec.size == 1:
            with ctx.step("Built"):
                raise Stalled(reasons.INVALID, "size 1 cannot be built; choose another")
        return await build(widget, ctx)

    widgets.create("one")
    reconciler = WidgetReconciler(behaviour)
    async with started(reconciler):
        await until(lambda: widgets.condition("one", "Stalled").get("status") == "True")
        assert widgets.condition("one", "Ready")["reason"] == "Invalid"
        assert widgets.condition("one", "Fetched")["status"] == "Unknown"
        assert reconciler.count("one") == 1
        widgets.patch("one", {"spec": {"size": 2}})
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        assert widgets.condition("one", "Stalled") == {}


async def test_a_transient_error_does_not_make_a_ready_object_unready(
    widgets: Widgets, started: Start
) -> None:
    broken = asyncio.Event()

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        with ctx.step("Fetched"):
            if broken.is_set():
                raise UnreachableError("the repository is away")
        return await build(widget, ctx)

    widgets.create("one")
    reconciler = WidgetReconciler(behaviour)
    async with started(reconciler) as controller:
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        broken.set()
        controller.wake(Key(widgets.namespace, "one"))
        await until(lambda: widgets.condition("one", "Fetched")["status"] == "False")
        assert widgets.condition("one", "Fetched")["reason"] == "Unreachable"
        assert widgets.condition("one", "Built")["status"] == "True"
        assert widgets.condition("one", "Ready")["status"] == "True"
        await until(lambda: reconciler.count("one") > 4)
        broken.clear()
        await until(lambda: widgets.condition("one", "Fetched")["status"] == "True")
        assert widgets.condition("one", "Reconciling") == {}


async def test_a_suspended_object_is_left_alone_until_it_no_longer_asks_for_that(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("by-spec", {"size": 1, "suspend": True})
    widgets.create("by-label", labels={"pequod.io/paused": "true"})
    reconciler = WidgetReconciler()
    async with started(reconciler):
        for name in ("by-spec", "by-label"):
            await until(partial(has_ready, widgets, name))
            assert widgets.condition(name, "Ready")["reason"] == "Suspended"
            assert widgets.status(name)["observedGeneration"] == -1
        assert reconciler.passes == []
        widgets.patch("by-spec", {"spec": {"suspend": False}})
        widgets.patch("by-label", {"metadata": {"labels": {"pequod.io/paused": None}}})
        for name in ("by-spec", "by-label"):
            await until(partial(is_ready, widgets, name))


async def test_a_request_to_reconcile_is_followed_and_echoed(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("one")
    reconciler = WidgetReconciler()
    async with started(reconciler):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        widgets.patch("one", {"metadata": {"annotations": {REQUESTED: "now-1"}}})
        await until(lambda: widgets.status("one").get("lastHandledReconcileAt") == "now-1")
        assert reconciler.count("one") == 2


async def test_a_finalizer_is_there_before_anything_is_done_and_gone_when_all_is_undone(
    widgets: Widgets, started: Start
) -> None:
    async def careful(widget: Widget, ctx: Context) -> Result:
        assert widget.metadata.finalizers == [HeldWidgetReconciler.finalizer]
        return await build(widget, ctx)

    widgets.create("one")
    reconciler = HeldWidgetReconciler(careful)
    blocked = True

    async def finalize(_widget: Widget, ctx: Context) -> Result:
        if blocked:
            with ctx.step("Built"):
                raise Waiting(reasons.CONFLICT, "something still uses it", after=0.1)
        return Result()

    reconciler.finalize_behaviour = finalize
    async with started(reconciler):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        widgets.delete("one")
        await until(lambda: widgets.condition("one", "Built").get("status") == "False")
        assert widgets.condition("one", "Built")["message"] == "something still uses it"
        assert reconciler.finalized == []
        blocked = False
        await until(lambda: widgets.get("one") is None)
        await until(lambda: reconciler.forgotten != [])
    assert reconciler.finalized == ["one"]


async def test_finalizers_of_others_are_kept(widgets: Widgets, started: Start) -> None:
    widgets.create("one", finalizers=["example.com/theirs"])
    async with started(HeldWidgetReconciler()):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
        widgets.delete("one")

        def ours_is_gone() -> bool:
            found = widgets.get("one")
            return found is not None and found["metadata"]["finalizers"] == ["example.com/theirs"]

        await until(ours_is_gone)
        widgets.patch("one", {"metadata": {"finalizers": None}})
        await until(lambda: widgets.get("one") is None)


async def test_what_an_object_refers_to_wakes_it_for_as_long_as_it_refers_to_it(
    widgets: Widgets, started: Start
) -> None:
    secret = Key(widgets.namespace, "wanted")
    seen: list[str | None] = []

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        if widget.spec.size == 1:
            found = await ctx.observed(SECRETS, secret)
            seen.append(found.metadata.resource_version if found else None)
        return await build(widget, ctx)

    path = f"/api/v1/namespaces/{widgets.namespace}/secrets"
    widgets.create("one")
    async with started(WidgetReconciler(behaviour)):
        await until(lambda: seen == [None])
        widgets.api.create(path, {"metadata": {"name": "other"}})
        widgets.api.create(path, {"metadata": {"name": "wanted"}})
        await until(lambda: len(seen) == 2)
        assert seen[1] is not None
        widgets.api.patch(f"{path}/wanted", {"stringData": {"a": "b"}})
        await until(lambda: len(seen) == 3)
        widgets.patch("one", {"spec": {"size": 2}})
        await until(lambda: widgets.status("one").get("size") == 2)
        widgets.api.patch(f"{path}/wanted", {"stringData": {"a": "c"}})
        widgets.create("two", {"size": 2})
        await until(lambda: widgets.status("two").get("size") == 2)
        assert len(seen) == 3


async def test_events_tell_what_changed_and_count_what_repeats(
    widgets: Widgets, started: Start
) -> None:
    fails = True

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        with ctx.step("Fetched"):
            if fails:
                raise UnreachableError("away")
        return await build(widget, ctx)

    widgets.create("one")
    async with started(WidgetReconciler(behaviour)):
        await until(lambda: [e["reason"] for e in widgets.events("one")] == ["Unreachable"])
        fails = False
        await until(
            lambda: (
                {e["reason"] for e in widgets.events("one")}
                == {"Unreachable", "Fetched", "Built", "Ready"}
            )
        )
    warning = next(e for e in widgets.events("one") if e["reason"] == "Unreachable")
    assert (warning["type"], warning["note"], warning["action"]) == ("Warning", "away", "Fetched")
    assert warning["reportingController"] == "pequod.io/operator"


async def test_a_fresh_object_is_never_taken_for_current(widgets: Widgets) -> None:
    widgets.create("one")
    assert widgets.status("one")["observedGeneration"] == -1
    waited = await asyncio.to_thread(
        widgets.api.kubectl,
        *("wait", "--for=condition=Ready", "--timeout=1s", "widget.test.pequod.io/one"),
        f"--namespace={widgets.namespace}",
        check=False,
    )
    assert waited.returncode != 0


async def test_case_15_an_object_that_was_replaced_by_its_namesake_is_a_new_one(
    widgets: Widgets, started: Start
) -> None:
    uids: list[str] = []

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        uids.append(widget.metadata.uid)
        return await build(widget, ctx)

    widgets.create("one")
    async with started(WidgetReconciler(behaviour)):
        await until(lambda: len(uids) == 1)
        widgets.delete("one")
        widgets.create("one")
        await until(lambda: len(set(uids)) == 2)
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
