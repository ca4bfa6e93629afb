"""Which kinds there are is what the API server says, and what it cannot say is not known."""

import secrets
from collections.abc import Iterator

import pytest

from clusters import Api
from customkinds import custom_kind, install, uninstall, until_gone
from faultactions import answer, with_header
from faultproxy import FaultProxy, calls
from pequod.kube import discovery
from pequod.kube.client import Client
from pequod.kube.discovery import Discovery
from pequod.kube.errors import KubeError, ServerError, UnknownKindError
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, Kind
from waiting import eventually

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


@pytest.fixture
def absent_group(api: Api) -> Iterator[str]:
    """A group whose own API server is away."""
    group = f"g{secrets.token_hex(4)}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "nobody"},
    }
    made = api.create(API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec})
    assert made.code == 201, made.message
    yield group
    api.call("DELETE", f"{API_SERVICES}/v1.{group}")


@pytest.fixture(params=["aggregated", "one by one"])
def way(request: pytest.FixtureRequest, proxy: FaultProxy) -> str:
    """Servers that say everything in one answer, and those that do not."""
    if request.param == "one by one":
        proxy.rule(calls("GET", "^/apis?$"), with_header("Accept", "application/json"))
    return str(request.param)


async def test_kinds_are_found_with_their_scope(
    way: str, api: Api, client: Client, proxied: Client
) -> None:
    assert way
    namespaced, cluster_wide = custom_kind(), custom_kind("Gadget", namespaced=False)
    for kind in (namespaced, cluster_wide):
        await install(api, client, kind)
    found = Discovery(proxied)
    for kind in (CONFIG_MAPS, NAMESPACES, DEPLOYMENTS, namespaced, cluster_wide):
        assert await found.find(kind.api_version, kind.kind) == kind
    for kind in (namespaced, cluster_wide):
        uninstall(api, kind)


async def test_a_kind_that_is_not_served_is_unknown(way: str, proxied: Client) -> None:
    assert way
    found = Discovery(proxied)
    for api_version, kind in (
        ("v1", "Nothing"),
        ("apps/v7", "Deployment"),
        ("nobody.example.com/v1", "Nothing"),
        ("v1", "configmaps"),
        ("", ""),
    ):
        with pytest.raises(UnknownKindError, match="does not serve"):
            await found.find(api_version, kind)


async def test_one_look_serves_everybody(proxy: FaultProxy, proxied: Client) -> None:
    found = Discovery(proxied)
    for _ in range(5):
        await found.find("v1", "ConfigMap")
        with pytest.raises(UnknownKindError):
            await found.find("v1", "Nothing")
    assert [call.path for call in proxy.journal] == ["/api", "/apis"]


@pytest.mark.parametrize("reminder", ["invalidated", "in time"])
async def test_a_kind_that_is_installed_later_is_found_and_a_removed_one_is_not(
    monkeypatch: pytest.MonkeyPatch, reminder: str, api: Api, client: Client
) -> None:
    kind = custom_kind()
    found = Discovery(client)
    with pytest.raises(UnknownKindError):
        await found.find(kind.api_version, kind.kind)
    await install(api, client, kind)
    if reminder == "in time":
        monkeypatch.setattr(discovery, "NEGATIVE_LIFETIME", 0.2)

    async def known() -> bool:
        if reminder == "invalidated":
            found.invalidate()
        try:
            return await found.find(kind.api_version, kind.kind) == kind
        except UnknownKindError:
            return False

    await eventually(known, "it was found")
    uninstall(api, kind)
    await until_gone(client, kind)
    monkeypatch.setattr(discovery, "LIFETIME", 0.2)

    async def unknown() -> bool:
        return not await known()

    await eventually(unknown, "it is no longer found")


async def test_a_group_whose_server_is_away_is_not_known_to_be_absent(
    way: str, absent_group: str, proxied: Client
) -> None:
    assert way
    found = Discovery(proxied)

    async def away() -> bool:
        found.invalidate()
        try:
            await found.find(f"{absent_group}/v1", "Thing")
        except ServerError as error:
            return "unknown" in str(error)
        except UnknownKindError:
            return False
        return False

    await eventually(away, "its kinds are unknown")
    assert await found.find("v1", "ConfigMap") == CONFIG_MAPS
    with pytest.raises(UnknownKindError):
        await found.find("nobody.example.com/v1", "Thing")


async def test_an_api_server_that_does_not_answer_says_nothing_about_kinds(
    proxy: FaultProxy, proxied: Client
) -> None:
    found = Discovery(proxied)
    away = proxy.rule(calls("GET", "^/apis$"), answer(503, "away"))
    with pytest.raises(ServerError):
        await found.find("v1", "ConfigMap")
    with pytest.raises(KubeError) as raised:
        await found.find("v1", "Nothing")
    assert not isinstance(raised.value, UnknownKindError)
    away.remove()
    assert await found.find("v1", "ConfigMap") == CONFIG_MAPS

    proxy.rule(calls("GET", "^/apis?$"), answer(503, "away"))
    assert await found.find("v1", "ConfigMap") == CONFIG_MAPS, "what was found is still believed"
