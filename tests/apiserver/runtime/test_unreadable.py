"""Case 92: an object that does not fit its type is one object's problem, not its kind's."""

import asyncio

from clusters import Api
from pequod.crd.definition import custom_resource_definition
from waiting import until
from widgets import Start, Widget, WidgetReconciler, Widgets

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def loosen(api: Api) -> None:
    """The schema as an earlier release might have had it."""
    crd = custom_resource_definition(Widget)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"] = {
        "x-kubernetes-preserve-unknown-fields": True
    }
    put(api, crd)


def tighten(api: Api) -> None:
    put(api, custom_resource_definition(Widget))


def put(api: Api, crd: dict[str, object]) -> None:
    answer = api.call(
        "PATCH",
        f"{CRDS}/widgets.test.pequod.io?fieldManager=test&force=true",
        crd,
        kind="apply-patch+yaml",
    )
    assert answer.code == 200, answer.message


async def test_case_92_a_bad_object_says_so_itself_and_the_others_are_served(
    widgets: Widgets, started: Start
) -> None:
    loosen(widgets.api)
    try:
        await until(lambda: creates_bad(widgets))
    finally:
        tighten(widgets.api)
    widgets.create("good")
    reconciler = WidgetReconciler()
    async with started(reconciler):
        await until(lambda: widgets.condition("good", "Ready").get("status") == "True")
        await until(lambda: widgets.condition("bad", "Stalled").get("status") == "True")
        said = widgets.condition("bad", "Ready")
        assert said["reason"] == "Unreadable"
        assert "$.spec.size" in said["message"]
        version = widgets.get("bad")["metadata"]["resourceVersion"]  # type: ignore[index]
        widgets.create("later")
        await until(lambda: widgets.condition("later", "Ready").get("status") == "True")
        assert widgets.get("bad")["metadata"]["resourceVersion"] == version  # type: ignore[index]
        assert reconciler.count("bad") == 0
        await asyncio.to_thread(widgets.patch, "bad", {"spec": {"size": 4}})
        await until(lambda: widgets.status("bad").get("size") == 4)
        assert widgets.condition("bad", "Stalled") == {}
        loosen(widgets.api)
        try:
            await until(lambda: breaks_again(widgets))
        finally:
            tighten(widgets.api)
        await until(lambda: widgets.condition("bad", "Ready").get("reason") == "Unreadable")


def breaks_again(widgets: Widgets) -> bool:
    path = f"/apis/test.pequod.io/v1/namespaces/{widgets.namespace}/widgets/bad"
    return widgets.api.patch(path, {"spec": {"size": "large"}}).code == 200


def creates_bad(widgets: Widgets) -> bool:
    """Whether the loose schema is in force by now."""
    body = {
        "apiVersion": "test.pequod.io/v1",
        "kind": "Widget",
        "metadata": {"name": "bad"},
        "spec": {"size": "large"},
    }
    path = f"/apis/test.pequod.io/v1/namespaces/{widgets.namespace}/widgets"
    return widgets.api.create(path, body).code == 201
