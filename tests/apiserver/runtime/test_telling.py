"""What others can see of a pass: events that count, spans that nest."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pequod.api import reasons
from pequod.kube.errors import UnreachableError
from pequod.kube.kinds import NAMESPACES
from pequod.kube.objects import Key
from pequod.kube.transport import Transport
from pequod.runtime import events
from pequod.runtime.context import Context
from pequod.runtime.verdicts import Result, Waiting
from waiting import until
from widgets import Start, Widget, WidgetReconciler, Widgets, build, is_ready


def flapping() -> WidgetReconciler:
    """Fails every second time."""
    turns = 0

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        nonlocal turns
        turns += 1
        with ctx.step("Fetched"):
            if turns % 2:
                raise UnreachableError(f"away for the {turns}. time")
        return await build(widget, ctx)

    return WidgetReconciler(behaviour)


def telling(**along_with: str) -> WidgetReconciler:
    """Tells that it is ready, some widgets with details that others may tell for them."""

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        name = widget.metadata.name
        other = along_with.get(name, "")
        ctx.tell(
            reasons.READY, f"{name} is ready", details="a, b" if other else "", along_with=other
        )
        return await build(widget, ctx)

    return WidgetReconciler(behaviour)


def notes(widgets: Widgets, name: str) -> list[str]:
    found = [event for event in widgets.events(name) if event["action"] == "Reconcile"]
    return [event["note"] for event in found]


async def test_what_two_objects_would_tell_is_told_once_with_all_details(
    widgets: Widgets, started: Start
) -> None:
    widgets.create("source")
    source = widgets.get("source")
    assert source is not None
    reconciler = telling(graph=source["metadata"]["uid"])
    async with started(reconciler) as controller:
        await until(lambda: notes(widgets, "source") == ["source is ready"])
        widgets.create("graph")
        await until(lambda: is_ready(widgets, "graph"))
        widgets.patch("source", {"spec": {"size": 2}})
        await until(lambda: "source is ready; a, b" in notes(widgets, "source"))
        assert controller.synced
    assert notes(widgets, "graph") == []


async def test_what_nobody_else_tells_is_told_alone(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HOLD", 0.05)
    widgets.create("graph")
    async with started(telling(graph="of-somebody-silent")):
        await until(lambda: notes(widgets, "graph") == ["graph is ready; a, b"])


class PacedReconciler(WidgetReconciler):
    """Says that it is on its way at once, unless everybody is busy."""

    linger = 0.0
    patient = True

    def pace(self, object_: Widget) -> float:  # noqa: ARG002 -- the same for all
        return 0.001


async def on_its_way(_widget: Widget, _ctx: Context) -> Result:
    raise Waiting(reasons.PROGRESSING, "it takes a while")


async def test_what_is_on_its_way_says_so_later_where_requests_take_long(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress comes before news of it, for as long as the API server is what all wait for."""
    reconciler = PacedReconciler(on_its_way)
    async with started(reconciler) as controller:
        monkeypatch.setattr(Transport, "takes", 1e6)
        widgets.create("one")
        key = Key(widgets.namespace, "one")
        for number in range(1, 4):
            await until(lambda number=number: reconciler.count("one") >= number)  # type: ignore[misc]
            controller.wake(key)
        found = widgets.get("one")
        assert found is not None
        assert "conditions" not in found.get("status", {})
        monkeypatch.setattr(Transport, "takes", 0.0)
        controller.wake(key)
        await until(lambda: widgets.condition("one", "Ready").get("reason") == "Progressing")


async def test_a_repeated_event_is_one_event_with_a_growing_count(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "QUIET", 0.0)
    widgets.create("one")
    reconciler = flapping()
    async with started(reconciler) as controller:

        def counted() -> int:
            found = [e for e in widgets.events("one") if e["reason"] == "Unreachable"]
            assert len(found) <= 1
            controller.wake(Key(widgets.namespace, "one"))
            return int((found[0].get("series") or {}).get("count", 1)) if found else 0

        await until(lambda: counted() >= 4)
    notes = {e["note"] for e in widgets.events("one") if e["reason"] == "Unreachable"}
    assert notes == {"away for the 1. time"}


async def test_an_event_that_somebody_deleted_is_told_anew(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "QUIET", 0.0)
    widgets.create("one")
    async with started(flapping()) as controller:
        await until(lambda: any(e["reason"] == "Unreachable" for e in widgets.events("one")))
        path = f"/apis/events.k8s.io/v1/namespaces/{widgets.namespace}/events"
        assert widgets.api.call("DELETE", path).code == 200

        def told() -> bool:
            controller.wake(Key(widgets.namespace, "one"))
            return any(e["reason"] == "Unreachable" for e in widgets.events("one"))

        await until(told)


async def test_an_object_that_tells_too_much_is_cut_short(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "BURST", 2)
    widgets.create("one")
    async with started(WidgetReconciler()):
        await until(lambda: is_ready(widgets, "one"))
        await until(lambda: len(widgets.events("one")) == 2)
        widgets.create("two")
        await until(lambda: len(widgets.events("two")) == 2)
        assert len(widgets.events("one")) == 2


async def test_spans_of_steps_and_requests_are_inside_those_of_their_passes(
    widgets: Widgets, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr("pequod.base.telemetry._tracer", provider.get_tracer("pequod"))

    async def behaviour(widget: Widget, ctx: Context) -> Result:
        with ctx.step("Fetched"):
            client = controller.client
            with pytest.raises(Exception, match="forbidden"):
                await client.get(NAMESPACES, "kube-system")
        return Result(message=widget.metadata.name)

    widgets.create("one")
    async with started(WidgetReconciler(behaviour)) as controller:
        await until(lambda: is_ready(widgets, "one"))
    spans = exporter.get_finished_spans()
    (reconcile,) = (span for span in spans if span.name == "reconcile")
    assert (reconcile.attributes or {})["object"] == f"{widgets.namespace}/one"
    (step,) = (span for span in spans if span.name == "Fetched")
    (request,) = (
        span
        for span in spans
        if span.name == "get" and (span.attributes or {})["resource"] == "namespaces"
    )
    assert step.parent is not None
    assert reconcile.context is not None
    assert step.parent.span_id == reconcile.context.span_id
    assert request.parent is not None
    assert step.context is not None
    assert request.parent.span_id == step.context.span_id
