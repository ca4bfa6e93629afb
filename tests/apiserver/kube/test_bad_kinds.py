"""One bad object, or one bad kind, is that object's or that kind's problem alone."""

import msgspec

from clusters import Api
from customkinds import CRDS, custom_kind, definition, install, uninstall, until_gone
from following import Following, Meta, following, following_kind, put
from pequod.kube.cache import Projection, Unreadable
from pequod.kube.client import Client
from pequod.kube.kinds import Kind
from pequod.kube.objects import Key, Object
from waiting import eventually


class WidgetSpec(msgspec.Struct, frozen=True):
    size: int


class Widget(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: WidgetSpec


WIDGET = Projection(Widget)


def widget(kind: Kind, namespace: str, name: str, size: object) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"ours": "yes"}},
        "spec": {"size": size},
    }


def sizes(run: Following[Widget]) -> dict[str, int]:
    return {value.metadata.name: value.spec.size for value in run.cache.values()}


async def test_case_92_a_bad_object_never_keeps_the_others_from_being_served(
    api: Api, client: Client, namespace: str
) -> None:
    kind = custom_kind()
    await install(api, client, kind)
    for name, size in (("a", 1), ("bad", "large"), ("c", 3), ("huge", 10**30)):
        await client.create(kind, widget(kind, namespace, name, size))
    async with following_kind(client, namespace, kind, WIDGET) as run:
        run.cache.add_index("size", lambda value: [str(value.spec.size)])
        assert sizes(run) == {"a": 1, "c": 3}
        bad = run.get("bad")
        assert isinstance(bad, Unreadable)
        assert "spec.size" in bad.problem
        assert isinstance(run.get("huge"), Unreadable)

        await client.apply(kind, widget(kind, namespace, "d", 4))
        await eventually(lambda: sizes(run) == {"a": 1, "c": 3, "d": 4}, "others are followed")

        await client.patch(kind, "bad", {"spec": {"size": 2}}, namespace=namespace)
        await eventually(lambda: sizes(run).get("bad") == 2, "it can be read once it is repaired")
        assert run.cache.by("size", "2") == {Key(namespace, "bad")}

        await client.patch(kind, "bad", {"spec": {"size": None}}, namespace=namespace)
        await eventually(lambda: isinstance(run.get("bad"), Unreadable), "and broken again")
        assert run.cache.by("size", "2") == frozenset()
        await run.equals(client)
    uninstall(api, kind)


async def test_case_22_a_kind_that_goes_and_comes_back_is_followed_again_by_itself(
    api: Api, client: Client, namespace: str
) -> None:
    kind = custom_kind()
    await install(api, client, kind)
    await client.create(kind, widget(kind, namespace, "a", 1))
    async with (
        following_kind(client, namespace, kind, WIDGET) as widgets,
        following(client, namespace) as settings,
    ):
        assert sizes(widgets) == {"a": 1}
        uninstall(api, kind)
        await until_gone(client, kind)
        # The API server deletes the objects one by one before the kind itself.
        await eventually(lambda: widgets.names() == [], "its deletion was told")
        await eventually(lambda: widgets.cache.failure, "the kind is known to be away")
        await put(client, namespace, "meanwhile")
        await eventually(lambda: settings.names() == ["meanwhile"], "other kinds are followed")

        assert api.create(CRDS, definition(kind)).code == 201
        await eventually(lambda: widgets.cache.failure is None, "it is listed again", within=60)
        await client.create(kind, widget(kind, namespace, "b", 2))
        await eventually(lambda: sizes(widgets) == {"b": 2}, "and followed")
    uninstall(api, kind)


async def test_case_22_nothing_is_dropped_because_a_kind_cannot_be_listed(
    api: Api, client: Client, namespace: str
) -> None:
    kind = custom_kind()
    await install(api, client, kind)
    await client.create(kind, widget(kind, namespace, "a", 1))
    async with following_kind(client, namespace, kind, WIDGET) as run:
        body = definition(kind)["spec"]["versions"][0]
        other = body | {"name": "v2", "storage": False}
        versions = [body | {"served": False}, other]
        answer = api.patch(f"{CRDS}/{kind.resource}", {"spec": {"versions": versions}})
        assert answer.code == 200, answer.message
        await eventually(lambda: run.cache.failure, "it cannot be listed any more", within=60)
        assert sizes(run) == {"a": 1}
        api.patch(f"{CRDS}/{kind.resource}", {"spec": {"versions": [body, other]}})
        await eventually(lambda: run.cache.failure is None, "it can be listed again", within=60)
        assert sizes(run) == {"a": 1}
    uninstall(api, kind)
