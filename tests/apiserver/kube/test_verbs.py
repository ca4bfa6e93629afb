"""Every verb does what it says, and every refusal says what was wrong."""

import asyncio

import msgspec
import pytest

from clusters import Api
from customkinds import custom_kind, install, uninstall
from faultproxy import FaultProxy, calls
from pequod.controllers.frontend.storing import GRAPHS
from pequod.kube.auth import Impersonation
from pequod.kube.client import Client, Exactly, Selection, Write
from pequod.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    FieldConflict,
    FieldConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS, Kind
from pequod.kube.objects import Named, Object

OURS = "ours=yes"
ROLES = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")


def settings(namespace: str, name: str = "settings", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"ours": "yes"}},
        "data": data,
    }


async def exists(client: Client, namespace: str, name: str = "settings") -> bool:
    try:
        await client.get(CONFIG_MAPS, name, namespace=namespace)
    except NotFoundError:
        return False
    return True


async def test_an_object_is_created_read_changed_and_deleted(
    client: Client, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, settings(namespace, a="1"))
    read = await client.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert read["data"] == {"a": "1"}
    assert read["metadata"]["uid"] == made["metadata"]["uid"]

    answer = await client.patch(
        CONFIG_MAPS, "settings", {"data": {"a": None, "b": "2"}}, namespace=namespace
    )
    assert msgspec.json.decode(answer)["data"] == {"b": "2"}

    read = await client.get(CONFIG_MAPS, "settings", namespace=namespace)
    replaced = await client.replace(CONFIG_MAPS, read | {"data": {"c": "3"}})
    assert replaced["data"] == {"c": "3"}

    uid = made["metadata"]["uid"]
    await client.delete(CONFIG_MAPS, "settings", Exactly(uid), namespace=namespace)
    assert not await exists(client, namespace)


async def test_a_read_can_be_of_a_type(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, settings(namespace))
    named = await client.get(CONFIG_MAPS, "settings", namespace=namespace, type=Named)
    assert (named.metadata.namespace, named.metadata.name) == (namespace, "settings")


async def test_what_is_there_already_is_not_created_again(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, settings(namespace, a="1"))
    with pytest.raises(AlreadyExistsError):
        await client.create(CONFIG_MAPS, settings(namespace, a="2"))


async def test_apply_leaves_the_fields_of_others_alone(client: Client, namespace: str) -> None:
    await client.apply(CONFIG_MAPS, settings(namespace, a="1"), Write(manager="one"))
    await client.apply(CONFIG_MAPS, settings(namespace, b="2"), Write(manager="two"))
    both = await client.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert both["data"] == {"a": "1", "b": "2"}
    less = await client.apply(CONFIG_MAPS, settings(namespace), Write(manager="one"))
    assert less["data"] == {"b": "2"}


async def test_a_field_of_another_manager_is_a_conflict_that_names_both(
    client: Client, namespace: str
) -> None:
    await client.apply(CONFIG_MAPS, settings(namespace, a="1"), Write(manager="the one"))
    with pytest.raises(FieldConflictError) as raised:
        await client.apply(CONFIG_MAPS, settings(namespace, a="2"), Write(manager="two"))
    assert raised.value.conflicts == (FieldConflict("the one", ".data.a"),)

    taken = await client.apply(
        CONFIG_MAPS, settings(namespace, a="2"), Write(manager="two", force=True)
    )
    assert taken["data"] == {"a": "2"}


async def test_a_dry_run_answers_and_stores_nothing(client: Client, namespace: str) -> None:
    dry = Write(dry_run=True)
    answered = await client.create(CONFIG_MAPS, settings(namespace, a="1"), dry)
    assert answered["data"] == {"a": "1"}
    await client.apply(CONFIG_MAPS, settings(namespace, a="1"), dry)
    assert not await exists(client, namespace)

    made = await client.create(CONFIG_MAPS, settings(namespace))
    exactly = Exactly(made["metadata"]["uid"])
    await client.delete(CONFIG_MAPS, "settings", exactly, namespace=namespace, dry_run=True)
    assert await exists(client, namespace)


async def test_an_apply_with_resource_version_1_creates_but_never_changes(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    """The contract that the engine's rule for creating relies on."""
    wish = settings(namespace, a="1")
    wish["metadata"]["resourceVersion"] = "1"
    await proxied.apply(CONFIG_MAPS, wish)
    assert [call.code for call in proxy.asked(calls("PATCH"))] == [201]

    wish["data"] = {"a": "2"}
    with pytest.raises(ConflictError):
        await proxied.apply(CONFIG_MAPS, wish, Write(force=True))
    kept = await proxied.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert kept["data"] == {"a": "1"}


async def test_a_patch_for_another_version_or_object_is_refused(
    client: Client, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, settings(namespace, a="1"))
    await client.patch(CONFIG_MAPS, "settings", {"data": {"a": "2"}}, namespace=namespace)
    for precondition in (
        {"resourceVersion": made["metadata"]["resourceVersion"]},
        {"uid": "11111111-1111-1111-1111-111111111111"},
    ):
        patch = {"metadata": precondition, "data": {"a": "3"}}
        # Another UID in a patch is no precondition to the API server, but an invalid change.
        with pytest.raises((ConflictError, InvalidError)):
            await client.patch(CONFIG_MAPS, "settings", patch, namespace=namespace)
    kept = await client.get(CONFIG_MAPS, "settings", namespace=namespace)
    assert kept["data"] == {"a": "2"}


async def test_a_delete_for_another_object_or_version_is_a_conflict_and_it_survives(
    client: Client, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, settings(namespace, a="1"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    await client.patch(CONFIG_MAPS, "settings", {"data": {"a": "2"}}, namespace=namespace)
    for exactly in (Exactly("11111111-1111-1111-1111-111111111111"), Exactly(uid, version)):
        with pytest.raises(ConflictError):
            await client.delete(CONFIG_MAPS, "settings", exactly, namespace=namespace)
    assert await exists(client, namespace)
    with pytest.raises(ValueError, match="UID"):
        await client.delete(CONFIG_MAPS, "settings", Exactly(""), namespace=namespace)


async def test_a_field_that_the_schema_does_not_know_is_named(
    client: Client, namespace: str
) -> None:
    wrong = settings(namespace) | {"dta": {"a": "1"}}
    with pytest.raises(BadRequestError, match=r'unknown field "dta"'):
        await client.create(CONFIG_MAPS, wrong)
    # Without a schema for it, an apply has nowhere to put the field, and says so on its own.
    with pytest.raises(ApiError, match="dta"):
        await client.apply(CONFIG_MAPS, wrong)
    graph = {"apiVersion": GRAPHS.api_version, "kind": GRAPHS.kind, "spec": {"nodez": []}}
    with pytest.raises(ApiError, match="nodez"):
        await client.apply(GRAPHS, graph | {"metadata": wrong["metadata"]})
    await client.create(CONFIG_MAPS, wrong, Write(validation="Ignore"))


async def test_an_invalid_object_is_refused_with_every_cause(
    client: Client, namespace: str
) -> None:
    wrong = settings(namespace, **{"a b": "1", "c d": "2"})
    with pytest.raises(InvalidError) as raised:
        await client.create(CONFIG_MAPS, wrong)
    fields = {cause.field for cause in raised.value.causes}
    assert fields == {"data[a b]", "data[c d]"}


async def test_what_is_not_there_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        await client.get(CONFIG_MAPS, "nobody", namespace=namespace)
    with pytest.raises(NotFoundError):
        await client.list(custom_kind())
    with pytest.raises(NotFoundError):
        await client.delete(CONFIG_MAPS, "nobody", Exactly("1"), namespace=namespace)


async def test_a_list_is_of_one_moment_page_by_page(client: Client, namespace: str) -> None:
    await asyncio.gather(
        *(client.create(CONFIG_MAPS, settings(namespace, f"n{number}")) for number in range(7))
    )
    ours = Selection(namespace=namespace, labels=OURS)
    assert await client.count(CONFIG_MAPS, ours) == 7
    assert len(await client.list(CONFIG_MAPS, ours)) == 7

    sizes: list[int] = []
    names: list[str] = []
    async for page in client.pages(CONFIG_MAPS, ours, limit=3):
        if not sizes:
            await client.create(CONFIG_MAPS, settings(namespace, "n5a"))
        items = [msgspec.json.decode(raw, type=Named) for raw in page.items or ()]
        sizes.append(len(items))
        names += [item.metadata.name for item in items]
    assert sizes == [3, 3, 1]
    assert names == [f"n{number}" for number in range(7)]
    assert await client.count(CONFIG_MAPS, ours) == 8
    assert await client.count(SECRETS, Selection(namespace=namespace)) == 0


async def test_labels_and_fields_choose(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, settings(namespace, name))
    by_field = Selection(namespace=namespace, fields="metadata.name=b")
    assert [found["metadata"]["name"] for found in await client.list(CONFIG_MAPS, by_field)] == [
        "b"
    ]
    assert await client.list(CONFIG_MAPS, Selection(namespace=namespace, labels="ours=no")) == []


async def test_sub_resources_are_written_on_their_own(
    api: Api, client: Client, namespace: str
) -> None:
    kind = custom_kind()
    await install(api, client, kind)
    place = {"apiVersion": kind.api_version, "kind": kind.kind} | {
        "metadata": {"name": "w", "namespace": namespace}
    }
    await client.create(kind, place | {"spec": {"replicas": 1}, "status": {"ignored": True}})

    status = Write(part="status")
    patch = {"status": {"seen": 1}, "spec": {"replicas": 9}}
    await client.patch(kind, "w", patch, status, namespace=namespace)
    await client.apply(kind, place | {"status": {"applied": 2}}, status)
    await client.patch(
        kind, "w", {"spec": {"replicas": 5}}, Write(part="scale"), namespace=namespace
    )
    found = await client.get(kind, "w", namespace=namespace)
    assert found["spec"] == {"replicas": 5}
    assert found["status"] == {"seen": 1, "applied": 2}
    uninstall(api, kind)


async def test_somebody_may_do_what_they_may_do_and_no_more(client: Client, namespace: str) -> None:
    user = f"jane-{namespace}"
    named = {"metadata": {"name": "reader", "namespace": namespace}}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    await client.create(ROLES, named | {"rules": [rule]})
    role = {"apiGroup": ROLES.group, "kind": "Role", "name": "reader"}
    subject = {"apiGroup": ROLES.group, "kind": "User", "name": user}
    await client.create(ROLE_BINDINGS, named | {"roleRef": role, "subjects": [subject]})
    await client.create(CONFIG_MAPS, settings(namespace, a="1"))
    jane = client.acting_as(Impersonation(user=user))
    assert (await jane.get(CONFIG_MAPS, "settings", namespace=namespace))["data"] == {"a": "1"}
    with pytest.raises(ForbiddenError, match=user):
        await jane.create(CONFIG_MAPS, settings(namespace, "another"))
    with pytest.raises(ForbiddenError):
        await jane.acting_as(Impersonation.of_account(namespace, "default")).list(NAMESPACES)


@pytest.mark.parametrize(
    "name", ["a?b=c", "a#b", "a%2F..%2Fkube-root-ca.crt", "a b", "ä", "a\\b", "a;b", "..a", "~"]
)
async def test_an_odd_name_stays_in_its_segment_of_the_path(
    name: str, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    with pytest.raises((NotFoundError, BadRequestError)):
        await proxied.get(CONFIG_MAPS, name, namespace=namespace)
    [call] = proxy.journal
    assert call.path == f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    assert call.query == {}


@pytest.mark.parametrize("name", ["", ".", "..", "../secrets/s", "a/b"])
async def test_a_name_that_would_be_another_path_is_never_sent(
    name: str, proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    with pytest.raises(ValueError, match="path"):
        await proxied.get(CONFIG_MAPS, name, namespace=namespace)
    assert proxy.journal == []
