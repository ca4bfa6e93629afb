"""The proxy that fails on demand passes everything else on, as whoever asks."""

from pathlib import Path

from clusters import Api
from faultproxy import FaultProxy, calls
from pequod.kube.client import Client
from pequod.kube.kinds import CONFIG_MAPS, NAMESPACES, Kind
from pequod.kube.kubeconfig import own_access
from pequod.kube.transport import Transport

REVIEWS = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)


async def who(kubeconfig: Path) -> str:
    """As whom the API server sees the user of a kubeconfig."""
    transport = Transport(own_access(kubeconfig))
    try:
        seen = await Client(transport).create(REVIEWS, {})
    finally:
        await transport.close()
    return str(seen["status"]["userInfo"]["username"])


async def test_a_kubeconfig_of_the_proxy_is_the_administrator_or_who_the_token_says(
    api: Api, proxy: FaultProxy, namespace: str, tmp_path: Path
) -> None:
    assert await who(proxy.kubeconfig(tmp_path / "admin")) == "pequod-dev-admin"

    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert api.create(accounts, {"metadata": {"name": "robot"}}).code == 201
    token = api.create(f"{accounts}/robot/token", {"spec": {}}).body["status"]["token"]
    robot = await who(proxy.kubeconfig(tmp_path / "robot", token))
    assert robot == f"system:serviceaccount:{namespace}:robot"


async def test_the_journal_says_who_asked_for_what(
    proxy: FaultProxy, proxied: Client, namespace: str
) -> None:
    await proxied.get(NAMESPACES, namespace)
    wish = {"metadata": {"name": "a", "namespace": namespace}, "data": {"a": "1"}}
    await proxied.create(CONFIG_MAPS, wish)
    read, written = proxy.journal
    assert (read.method, read.path, read.code) == ("GET", f"/api/v1/namespaces/{namespace}", 200)
    assert (written.method, written.code, written.writes) == ("POST", 201, True)
    assert written.query["fieldManager"] == "pequod-operator"
    assert b'"a":"1"' in written.body
    assert written.agent == "pequod"
    assert proxy.asked(calls("POST", "/configmaps$")) == [written]
