"""Case 9: an object that breaks its handler costs nobody but itself anything."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from pequod.kube.errors import ConflictError
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Result
from waiting import until
from widgets import Start, Widget, WidgetReconciler, Widgets, build, is_ready

Poison = Callable[[], Awaitable[None]]


async def raises() -> None:
    raise ZeroDivisionError("with a secret in its text")


async def recurses() -> None:
    await recurses()


async def conflicts() -> None:
    raise ConflictError(409)


async def never_ends() -> None:
    await asyncio.Event().wait()


async def runs_out_of_memory() -> None:
    raise MemoryError


def poisoned(poison: Poison) -> WidgetReconciler:
    async def behaviour(widget: Widget, ctx: Context) -> Result:
        with ctx.step("Fetched"):
            if widget.metadata.name == "poison":
                await poison()
        return await build(widget, ctx)

    return WidgetReconciler(behaviour)


@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        (raises, "InternalError"),
        (recurses, "InternalError"),
        (conflicts, "Conflict"),
        (runs_out_of_memory, "InternalError"),
    ],
)
async def test_case_9_a_handler_that_fails_gets_backoff_and_a_condition_and_others_are_served(
    widgets: Widgets, started: Start, poison: Poison, reason: str
) -> None:
    widgets.create("poison")
    reconciler = poisoned(poison)
    async with started(reconciler):
        await until(lambda: reconciler.count("poison") >= 3)
        for number in range(5):
            widgets.create(f"healthy-{number}")
        for number in range(5):
            name = f"healthy-{number}"
            await until(partial(is_ready, widgets, name))
        await until(lambda: widgets.condition("poison", "Fetched") != {})
    condition = widgets.condition("poison", "Fetched")
    assert (condition["status"], condition["reason"]) == ("False", reason)
    assert "secret" not in condition["message"]
    assert widgets.condition("poison", "Ready")["status"] == "False"
    assert widgets.condition("poison", "Reconciling")["status"] == "True"


async def test_case_9_handlers_that_never_end_are_ended_and_others_are_served(
    widgets: Widgets, started: Start
) -> None:
    async def behaviour(widget: Widget, ctx: Context) -> Result:
        if widget.metadata.name.startswith("endless"):
            await never_ends()
        return await build(widget, ctx)

    for number in range(WidgetReconciler.concurrency):
        widgets.create(f"endless-{number}")
    widgets.create("healthy")
    async with started(WidgetReconciler(behaviour), pass_limit=0.5):
        await until(lambda: widgets.condition("healthy", "Ready").get("status") == "True")
        await until(lambda: widgets.condition("endless-0", "Ready") != {})
        assert widgets.condition("endless-0", "Ready")["reason"] == "PassTimedOut"


async def test_a_poison_object_recovers_when_its_cause_is_gone(
    widgets: Widgets, started: Start
) -> None:
    broken = True

    async def sometimes() -> None:
        if broken:
            raise ZeroDivisionError

    widgets.create("poison")
    async with started(poisoned(sometimes)):
        await until(lambda: widgets.condition("poison", "Fetched").get("status") == "False")
        broken = False
        await until(lambda: widgets.condition("poison", "Ready").get("status") == "True")


async def test_case_25_endless_conflicts_on_the_status_end_with_the_status_published(
    widgets: Widgets, started: Start
) -> None:
    """Somebody else writes to the object all the time: faster than any pass can be."""

    async def disturbed(widget: Widget, ctx: Context) -> Result:
        labels = {"metadata": {"labels": {"written": str(len(reconciler.passes))}}}
        await asyncio.to_thread(widgets.patch, widget.metadata.name, labels)
        return await build(widget, ctx)

    reconciler = WidgetReconciler(disturbed)
    widgets.create("one")
    async with started(reconciler):
        await until(lambda: widgets.condition("one", "Ready").get("status") == "True")
