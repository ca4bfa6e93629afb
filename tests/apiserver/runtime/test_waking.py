"""What wakes an object besides itself: objects of other kinds, by owner, label and index."""

from collections.abc import Callable

import pytest

from children import Child
from pequod.kube.cache import Projection
from pequod.kube.client import Selection
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.runtime.triggers import Mapper, Trigger, by_index, by_label, by_owner
from waiting import until
from widgets import Start, Widget, WidgetReconciler, Widgets, is_ready


class IndexedReconciler(WidgetReconciler):
    """Widgets are found by the ConfigMap that they are named after."""

    indexes = {"settings": lambda w: [f"{w.metadata.namespace}/{w.metadata.name}-settings"]}


def owned(widgets: Widgets) -> dict[str, object]:
    found = widgets.get("one")
    assert found is not None
    owner = {"apiVersion": "test.pequod.io/v1", "kind": "Widget", "name": "one"}
    return {"name": "child", "ownerReferences": [owner | {"uid": found["metadata"]["uid"]}]}


def labelled(_widgets: Widgets) -> dict[str, object]:
    return {"name": "child", "labels": {"test.pequod.io/widget": "one"}}


def named(_widgets: Widgets) -> dict[str, object]:
    return {"name": "one-settings"}


@pytest.mark.parametrize(
    ("mapper", "metadata"),
    [
        (by_owner(Kind.of(Widget)), owned),
        (by_label("test.pequod.io/widget"), labelled),
        (by_index("settings"), named),
    ],
    ids=["owner", "label", "index"],
)
async def test_a_change_of_a_child_wakes_its_widget_and_no_other(
    widgets: Widgets,
    started: Start,
    mapper: Mapper,
    metadata: Callable[[Widgets], dict[str, object]],
) -> None:
    for name in ("one", "other"):
        widgets.create(name)
    reconciler = IndexedReconciler()
    here = Selection(namespace=widgets.namespace)
    reconciler.triggers = (Trigger(CONFIG_MAPS, Projection(Child), mapper, here),)
    path = f"/api/v1/namespaces/{widgets.namespace}/configmaps"
    async with started(reconciler):
        await until(lambda: is_ready(widgets, "one") and is_ready(widgets, "other"))
        child = metadata(widgets)
        assert widgets.api.create(path, {"metadata": child}).code == 201
        await until(lambda: reconciler.count("one") == 2)
        widgets.api.patch(f"{path}/{child['name']}", {"data": {"a": "b"}})
        await until(lambda: reconciler.count("one") == 3)
        widgets.api.call("DELETE", f"{path}/{child['name']}")
        await until(lambda: reconciler.count("one") == 4)
        assert reconciler.count("other") == 1
