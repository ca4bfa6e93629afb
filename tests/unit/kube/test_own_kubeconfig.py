"""The user's own kubeconfig: where it is looked for, how files are merged, what goes wrong."""

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from pequod.dev.pki import Authority
from pequod.kube import kubeconfig
from pequod.kube.auth import Access, ClientCertificate, Endpoint, Files, Fixed, Identity, bearer
from pequod.kube.errors import CredentialsError
from pequod.kube.kubeconfig import own_access

SERVER = "https://one.example:6443"
PKI = Authority()
CLIENT = PKI.client("ann")
SECRET = "s3cr3t-t0ken"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig, outside of any pod."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def inline(content: bytes) -> str:
    return b64encode(content).decode()


def config(
    name: str = "one",
    /,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    **top: object,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": SECRET} if user is None else user}],
        "contexts": [
            {"name": name, "context": context or {"cluster": name, "user": name}},
        ],
        **{key.replace("_", "-"): value for key, value in top.items()},
    }


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def access(folder: Path, **parts: dict[str, Any]) -> Access:
    return own_access(write(folder / "config", config(**parts)))


async def identity(found: Access) -> Identity:
    return await found.credentials.current()


def refusal(path: Path | None = None, context: str | None = None) -> str:
    with pytest.raises(CredentialsError) as caught:
        own_access(path, context)
    message = str(caught.value)
    assert SECRET not in message
    assert "\n" not in message
    return message


async def test_a_file_that_is_named_is_the_only_one_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = config(cluster={"server": "https://other.example"})
    monkeypatch.setenv("KUBECONFIG", str(write(home / "other", other)))
    found = access(home)
    assert found.endpoint == Endpoint(server=SERVER)
    assert await identity(found) == Identity(authorization=bearer(SECRET))


def test_kubeconfig_comes_before_the_pod_and_the_pod_before_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = Access(endpoint=Endpoint(server="https://pod.example"), credentials=Fixed())
    monkeypatch.setattr(kubeconfig, "in_cluster", lambda: inside)
    write(home / ".kube/config", config(cluster={"server": "https://home.example"}))
    assert own_access() is inside
    listed = config(cluster={"server": "https://listed.example"})
    monkeypatch.setenv("KUBECONFIG", str(write(home / "listed", listed)))
    assert own_access().endpoint.server == "https://listed.example"


def test_whoever_names_a_context_does_not_mean_the_pod(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = Access(endpoint=Endpoint(server="https://pod.example"), credentials=Fixed())
    monkeypatch.setattr(kubeconfig, "in_cluster", lambda: inside)
    write(home / ".kube/config", config())
    assert own_access(context="one").endpoint.server == SERVER


def test_without_anything_the_kubeconfig_at_home_is_used(home: Path) -> None:
    write(home / ".kube/config", config())
    assert own_access().endpoint.server == SERVER


def test_of_several_files_the_first_definition_and_the_first_current_context_win(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(home / "first", {**config("one"), "current-context": ""})
    again = config("one", cluster={"server": "https://again.example"})
    again["contexts"].append({"name": "two", "context": {"cluster": "one", "namespace": "n"}})
    second = write(home / "second", {**again, "current-context": "two"})
    third = write(home / "third", config("three"))
    empty = write(home / "empty", "")
    listed = ["", home / "missing", first, first / "below", empty, second, third]
    monkeypatch.setenv("KUBECONFIG", ":".join(str(path) for path in listed))
    found = own_access()
    assert found.endpoint.server == SERVER
    assert found.namespace == "n"
    assert own_access(context="three").namespace is None


async def test_a_context_without_a_user_is_anonymous(home: Path) -> None:
    found = access(home, context={"cluster": "one"})
    assert await identity(found) == Identity()


async def test_paths_count_from_the_folder_of_their_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "deep"
    write(folder / "ca.pem", PKI.certificate.decode())
    write(folder / "token", "from-a-file\n")
    write(folder / "cert.pem", CLIENT.certificate.decode())
    write(folder / "key.pem", CLIENT.key.decode())
    user = {
        "token": SECRET,
        "tokenFile": "token",
        "client-certificate": "cert.pem",
        "client-key": "./key.pem",
    }
    write(folder / "config", config(cluster={"certificate-authority": "ca.pem"}, user=user))
    monkeypatch.chdir(home)
    found = own_access(Path("deep/config"))
    monkeypatch.chdir("/")
    assert found.endpoint.authority == PKI.certificate
    shown = await identity(found)
    assert shown.authorization == bearer("from-a-file")
    assert shown.certificate == ClientCertificate(CLIENT.certificate, CLIENT.key)
    write(folder / "token", "renewed")
    found.credentials.rejected()
    assert (await identity(found)).authorization == bearer("renewed")


async def test_data_wins_over_files_even_by_half(home: Path) -> None:
    key = write(home / "key.pem", CLIENT.key.decode())
    user = {
        "client-certificate-data": inline(CLIENT.certificate),
        "client-certificate": "/nowhere",
        "client-key": str(key),
    }
    cluster = {
        "certificate-authority-data": inline(PKI.certificate),
        "certificate-authority": "/nowhere",
    }
    found = access(home, cluster=cluster, user=user)
    assert found.endpoint.authority == PKI.certificate
    assert isinstance(found.credentials, Fixed)
    shown = (await identity(found)).certificate
    assert shown == ClientCertificate(CLIENT.certificate, CLIENT.key)
    found.endpoint.tls(shown)


def test_a_certificate_in_two_files_is_kept_up_to_date(home: Path) -> None:
    found = access(home, user={"client-certificate": "a", "client-key": "b"})
    assert isinstance(found.credentials, Files)


def test_a_cluster_says_how_its_server_is_known(home: Path) -> None:
    cluster = {
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://proxy.example:3128",
    }
    assert access(home, cluster=cluster).endpoint == Endpoint(
        server=SERVER,
        server_name="kubernetes",
        verified=False,
        proxy="http://proxy.example:3128",
    )


async def test_a_name_and_a_password_become_a_header(home: Path) -> None:
    found = access(home, user={"username": "ann", "password": "pw"})
    assert (await identity(found)).authorization == "Basic YW5uOnB3"


def test_impersonation_is_taken_over_whole(home: Path) -> None:
    user = {
        "as": "bob",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["x", "y"]},
    }
    impersonation = access(home, user=user).impersonation
    assert impersonation is not None
    assert impersonation.headers() == [
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
    ]


async def test_a_plugin_runs_from_the_folder_of_the_kubeconfig_and_hears_of_the_cluster(
    home: Path,
) -> None:
    script = write(
        home / "deep/plugin",
        f"""#!{sys.executable}
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
cluster = info["spec"]["cluster"]
info["status"] = {{"token": cluster["server"] + "|" + cluster["config"]["audience"]}}
print(json.dumps(info))
""",
    )
    script.chmod(0o700)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plugin",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    told = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    cluster = {"extensions": [{"name": "other", "extension": 1}, told]}
    user = {
        "exec": plugin,
        "client-certificate-data": inline(CLIENT.certificate),
        "client-key-data": inline(CLIENT.key),
    }
    found = own_access(write(home / "deep/config", config(cluster=cluster, user=user)))
    shown = await identity(found)
    assert shown.authorization == bearer(f"{SERVER}|us")
    assert shown.certificate is not None


async def test_a_plugin_that_is_not_needed_is_not_run(home: Path) -> None:
    user = {
        "token": SECRET,
        "client-certificate-data": inline(CLIENT.certificate),
        "client-key-data": inline(CLIENT.key),
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "/nowhere/plugin",
        },
    }
    assert (await identity(access(home, user=user))).authorization == bearer(SECRET)


def test_where_nothing_is_found_the_message_says_where_and_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refusal()
    assert f"{home}/.kube/config" in message
    assert "set KUBECONFIG, or pass --kubeconfig" in message
    assert "/nowhere" in refusal(Path("/nowhere"))
    monkeypatch.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    assert "/nowhere/a, /nowhere/b" in refusal()


def test_without_a_home_the_message_still_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert "ServiceAccount of a pod" in refusal()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"users: [{SECRET}", "is not valid YAML in line"),
        (f"a: {SECRET}\0", "is not valid YAML"),
        (f"current-context: 2024-99-99 # {SECRET}", "put it in quotes"),
        (f"users: {SECRET}", "is not a kubeconfig: Expected `array | null`, got `str`"),
        (SECRET, "is not a kubeconfig: Expected `object`"),
        ("current-context: 7", "is not a kubeconfig: Expected `str | null`, got `int`"),
        ("clusters: []", "has no current-context: pass --context"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_without_its_content(
    home: Path, text: str, problem: str
) -> None:
    path = write(home / "config", text)
    message = refusal(path)
    assert message.startswith(str(path))
    assert problem in message


def test_a_file_that_cannot_be_read_is_named(home: Path) -> None:
    assert refusal(home) == (
        f"{home} cannot be read: Is a directory; check the path and its permissions"
    )


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"current_context": "two"}, 'context "two" is not in '),
        ({"clusters": None}, 'context "one" needs cluster "one", which is not there'),
        ({"users": []}, 'context "one" needs user "one", which is not there'),
        ({"context": {"user": "one"}}, 'context "one" has no cluster'),
        ({"cluster": {"server": None}}, 'cluster "one" has no server'),
        ({"cluster": {"server": "one.example"}}, 'cluster "one" has no server that begins'),
        ({"cluster": {"proxy-url": "socks5://p"}}, 'cluster "one" has a proxy-url'),
        (
            {"cluster": {"certificate-authority-data": f"*{SECRET}*"}},
            'cluster "one" has a certificate-authority-data that is not base64',
        ),
        ({"cluster": {"certificate-authority": "/nowhere"}}, "/nowhere cannot be read"),
        (
            {
                "cluster": {
                    "certificate-authority-data": inline(PKI.certificate),
                    "insecure-skip-tls-verify": True,
                }
            },
            "a certificate authority and insecure-skip-tls-verify",
        ),
        ({"user": {"client-key-data": f"*{SECRET}*"}}, "client-key-data that is not base64"),
        ({"user": {"client-key-data": inline(b"x")}}, "only one of a client certificate"),
        ({"user": {"client-certificate": "/nowhere"}}, "/nowhere cannot be read"),
        ({"user": {"token": SECRET, "username": "ann"}}, "a token and a username"),
        ({"user": {"token": f"{SECRET}\nx"}}, "a token with line breaks"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "no longer supports: use exec"),
        ({"user": {"as-groups": ["a"]}}, "as-groups or as-user-extra without as"),
        ({"user": {"exec": {"command": "x"}}}, "missing required field `apiVersion`"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_in_one_sentence(
    home: Path, parts: dict[str, Any], problem: str
) -> None:
    assert problem in refusal(write(home / "config", config(**parts)))


def test_a_proxy_of_the_environment_is_used_unless_the_host_is_excepted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / "config", config(cluster={"server": "https://cluster.example.com:6443"}))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    assert own_access(home / "config").endpoint.proxy == "http://proxy.example.com:3128"
    monkeypatch.setenv("NO_PROXY", ".example.com")
    assert own_access(home / "config").endpoint.proxy is None
