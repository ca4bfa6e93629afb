"""A kind for tests of the loop, made from types like every other, and a reconciler to steer."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Protocol

import msgspec

from clusters import Api
from pequod.api.meta import Resource, Spec, Status, crd
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.controller import Controller
from pequod.runtime.reconciler import Permission, Reconciler
from pequod.runtime.verdicts import Result


class WidgetSpec(Spec, frozen=True):
    """What a test asks for."""

    size: Annotated[int, msgspec.Meta(ge=0)] = 1
    """How large it is."""

    suspend: bool = False
    """Leave it alone."""


class WidgetStatus(Status):
    """What the reconciler of a test noted."""

    size: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How large it became."""


@crd("test.pequod.io/v1", plural="widgets", conditions=("Fetched", "Built"))
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Something for tests."""


Behaviour = Callable[[Widget, Context], Awaitable[Result]]


async def build(widget: Widget, ctx: Context) -> Result:
    """What a widget does unless a test wants something else."""
    with ctx.step("Fetched"):
        pass
    with ctx.step("Built") as built:
        widget.status.size = widget.spec.size
        built.message = f"size {widget.spec.size}"
    return Result(message="built")


class WidgetReconciler(Reconciler[Widget]):
    """Does what the test says, and counts."""

    kind = Widget
    permissions = (Permission(resources=("configmaps", "secrets"), verbs=("get", "list", "watch")),)
    concurrency = 4

    def __init__(self, behaviour: Behaviour = build) -> None:
        self.behaviour = behaviour
        self.passes: list[str] = []
        self.finalized: list[str] = []
        self.forgotten: list[Key] = []

    async def reconcile(self, object_: Widget, ctx: Context) -> Result:
        self.passes.append(object_.metadata.name)
        return await self.behaviour(object_, ctx)

    def forget(self, key: Key) -> None:
        self.forgotten.append(key)

    def count(self, name: str) -> int:
        return self.passes.count(name)


class HeldWidgetReconciler(WidgetReconciler):
    """The same, with a finalizer."""

    finalizer = "test.pequod.io/widget"

    def __init__(self, behaviour: Behaviour = build) -> None:
        super().__init__(behaviour)
        self.finalize_behaviour: Behaviour | None = None

    async def finalize(self, object_: Widget, ctx: Context) -> None:
        if self.finalize_behaviour is not None:
            await self.finalize_behaviour(object_, ctx)
        self.finalized.append(object_.metadata.name)


class Start(Protocol):
    """Runs a reconciler until the block ends."""

    def __call__(
        self, reconciler: WidgetReconciler, *, pass_limit: float = 30.0
    ) -> AbstractAsyncContextManager[Controller[Widget]]: ...


class Widgets:
    """The widgets of one namespace, seen as an administrator sees them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self._path = f"/apis/test.pequod.io/v1/namespaces/{namespace}/widgets"

    def create(self, name: str, spec: dict[str, Any] | None = None, **metadata: object) -> None:
        body = {
            "apiVersion": "test.pequod.io/v1",
            "kind": "Widget",
            "metadata": {"name": name, **metadata},
            "spec": spec or {"size": 1},
        }
        answer = self.api.create(self._path, body)
        assert answer.code == 201, answer.message

    def patch(self, name: str, body: dict[str, Any]) -> None:
        answer = self.api.patch(f"{self._path}/{name}", body)
        assert answer.code == 200, answer.message

    def delete(self, name: str) -> None:
        answer = self.api.call("DELETE", f"{self._path}/{name}")
        assert answer.code == 200, answer.message

    def get(self, name: str) -> dict[str, Any] | None:
        answer = self.api.get(f"{self._path}/{name}")
        return answer.body if answer.code == 200 else None

    def status(self, name: str) -> dict[str, Any]:
        found = self.get(name)
        assert found is not None
        status: dict[str, Any] = found["status"]
        return status

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        conditions = self.status(name).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def events(self, name: str) -> list[dict[str, Any]]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        items = self.api.get(path).body["items"]
        return [event for event in items if event["regarding"]["name"] == name]


def is_ready(widgets: Widgets, name: str) -> bool:
    """Whether a widget says that it is ready."""
    return bool(widgets.condition(name, "Ready").get("status") == "True")
