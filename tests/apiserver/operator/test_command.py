"""`pequod operator` as a command: what it asks for, what it says when it cannot have it."""

import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from clusters import PEQUOD, Api, pequod
from graphs import Graphs, config_map, grant, node
from instances import Foreground, eventually
from operators import NAMESPACE, ClusterObjects, operator, operator_kubeconfig, operator_token


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--kubeconfig=missing",), "missing"),
        (("--kubeconfig=garbage",), "garbage"),
        (("--kubeconfig=nowhere",), "cannot work with the cluster"),
        (("--health-address=eight",), "--health-address"),
        (("--metrics-address=127.0.0.1:99999",), "--metrics-address"),
        (("--cluster-probe-interval=often",), "--cluster-probe-interval"),
        (("--cluster-probe-interval=1ms",), "too short"),
        (("--lease-duration=5s", "--lease-renew-deadline=10s"), "the times of the Lease"),
        (("--kubeconfig=nowhere", "--context=other"), "other"),
    ],
)
def test_what_cannot_work_ends_with_one_sentence_and_a_next_step(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "garbage").write_text("{]")
    (tmp_path / "nowhere").write_text(
        "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], current-context: a,"
        " contexts: [{name: a, context: {cluster: a, user: a}}],"
        " users: [{name: a, user: {token: b}}]}"
    )
    done = subprocess.run(
        [*PEQUOD, "operator", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2, done.stderr


def test_the_help_names_every_option_with_its_environment_variable() -> None:
    shown = pequod("operator", "--help", state=Path("/nonexistent"), COLUMNS="200").stdout
    for option in ("kubeconfig", "namespace", "health-address", "lease-duration", "log-format"):
        assert f"--{option}" in shown
        assert f"PEQUOD_{option.replace('-', '_').upper()}" in shown


def test_a_port_that_is_taken_is_named(plane: Foreground, account: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                *PEQUOD,
                "operator",
                f"--kubeconfig={account}",
                f"--health-address=127.0.0.1:{port}",
                "--metrics-address=off",
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert plane.process.poll() is None


def test_options_can_come_from_the_environment(
    account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEQUOD_LOG_FORMAT", "console")
    monkeypatch.setenv("PEQUOD_LEADER_ELECTION", "false")
    with operator(account, tmp_path / "log") as running:
        running.wait_until_ready()
        assert running.end(signal.SIGINT) == 0
        assert "stopping" in running.text
        assert running.said == []


def test_pages_tell_how_it_is(plane: Foreground, account: Path, tmp_path: Path) -> None:
    clusters = ClusterObjects(plane.api, "default")
    with operator(account, tmp_path / "log") as running:
        running.wait_until_ready()
        running.wait_until_leading()
        clusters.create("counted")
        eventually(lambda: clusters.is_ready("counted"))
        code, said = running.page("/healthz")
        assert code == 200
        assert said.startswith("[+]watches ok, the quietest was heard ")
        pages = running.page("/readyz")[1].splitlines()
        assert pages[0] == "[+]caches ok"
        assert pages[1].startswith("[+]evaluator ")
        assert pages[2].startswith("[+]sources writable")
        shown = running.metrics()
        for metric in (
            'pequod_reconcile_total{controller="cluster",result="success"}',
            'pequod_reconcile_duration_seconds_count{controller="cluster"}',
            "pequod_reconcile_errors_total",
            'workqueue_depth{name="cluster"} 0.0',
            'workqueue_adds_total{name="cluster"}',
            "pequod_leader 1.0",
            'pequod_watch_age_seconds{cluster="own",resource="clusters.ajj.io"}',
            'pequod_api_requests_total{cluster="own",code="200",resource="clusters.ajj.io"',
            "process_resident_memory_bytes",
        ):
            assert metric in shown, metric
        clusters.delete("counted")


def test_graphs_are_limited_by_flags_and_counted(
    plane: Foreground, account: Path, tmp_path: Path
) -> None:
    api = plane.api
    flags = ("--max-graphs-per-namespace=2", "--max-objects-per-namespace=3")
    for name in ("by-graphs", "by-objects"):
        assert api.create("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
        grant(api, name)
    few, many = Graphs(api, "by-graphs", api), Graphs(api, "by-objects", api)
    with operator(account, tmp_path / "log", *flags) as running:
        running.wait_until_leading()
        for name in ("a", "b"):
            few.create(name, node(name, config_map(name)))
            eventually(lambda name=name: few.is_ready(name))  # type: ignore[misc]
        few.create("c", node("c", config_map("c")))
        many.create("one", *(node(id_, config_map(id_)) for id_ in "abcd"))
        eventually(lambda: few.reason("c") == "LimitExceeded")
        eventually(lambda: many.reason("one") == "LimitExceeded")
        assert many.find("configmaps", "a") is None
        shown = running.metrics()
        for metric in (
            'pequod_apply_total{result="created"} 2.0',
            "pequod_apply_duration_seconds_count 2.0",
            "pequod_resources_managed",
            'pequod_dag_nodes_total{stage="ready"}',
            "pequod_dag_execution_duration_seconds_count 2.0",
        ):
            assert metric in shown, metric


def test_the_account_that_graphs_act_as_is_a_flag(
    plane: Foreground, account: Path, tmp_path: Path
) -> None:
    """A Transform that names no account: its module is read, and its graph executed, as that."""
    api = plane.api
    flags = ("--identity=impersonate", "--default-service-account=builder")
    place = "/apis/platform.pequod.io/v1alpha1/namespaces/default/transforms"
    spec = {"cueRef": {"type": "inline", "ref": "output: {}"}, "input": {}}
    body = {
        "apiVersion": "platform.pequod.io/v1alpha1",
        "kind": "Transform",
        "metadata": {"name": "shop"},
        "spec": spec,
    }

    def said() -> str:
        conditions = api.get(f"{place}/shop").body.get("status", {}).get("conditions", ())
        return " ".join(one["message"] for one in conditions)

    with operator(account, tmp_path / "log", *flags) as running:
        running.wait_until_leading()
        assert api.create(place, body).code == 201
        eventually(lambda: "ServiceAccount default/builder does not exist" in said())


def test_a_kind_that_is_missing_is_waited_for_and_named(
    plane: Foreground, account: Path, tmp_path: Path
) -> None:
    api = plane.api
    api.kubectl("delete", "crd", "clusters.ajj.io")
    with operator(account, tmp_path / "log") as running:
        eventually(lambda: "not listed yet, for Cluster.ajj.io/v1" in running.page("/readyz")[1])
        assert running.page("/readyz")[0] == 503
        assert running.page("/healthz")[0] == 200
        install_crds(api)
        running.wait_until_ready()


def test_case_22_a_kind_that_is_deleted_and_made_again_is_followed_again(
    plane: Foreground, account: Path, tmp_path: Path
) -> None:
    clusters = ClusterObjects(plane.api, "default")
    with operator(account, tmp_path / "log") as running:
        running.wait_until_ready()
        clusters.create("before")
        eventually(lambda: clusters.is_ready("before"))
        plane.api.kubectl("delete", "crd", "clusters.ajj.io")
        install_crds(plane.api)
        clusters.create("after")
        eventually(lambda: clusters.is_ready("after"))
        assert running.process.poll() is None
        clusters.delete("after")


def install_crds(api: Api) -> None:
    crds = Path(__file__).parents[3] / "deploy/crds"
    api.kubectl("apply", "--server-side", f"--filename={crds}")
    api.kubectl("wait", "--for=condition=Established", "crd/clusters.ajj.io", "--timeout=60s")


def test_a_rotated_token_is_read_from_its_file_without_a_restart(
    plane: Foreground, tmp_path: Path
) -> None:
    """A token is bound to a Secret; when that is deleted, the API server refuses the token."""
    api = plane.api
    clusters = ClusterObjects(api, "default")
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    operator_kubeconfig(api, tmp_path / "unused")
    token = tmp_path / "token"

    def bound(name: str) -> str:
        api.create(secrets, {"metadata": {"name": name}})
        return operator_token(api, "--bound-object-kind=Secret", f"--bound-object-name={name}")

    token.write_text(bound("first"))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"""
        clusters: [{{name: a, cluster: {{server: '{api.server}',
          certificate-authority: '{api.kubeconfig.parent / "pki/ca.crt"}'}}}}]
        users: [{{name: a, user: {{tokenFile: token}}}}]
        contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
        current-context: a
        """
    )
    with operator(kubeconfig, tmp_path / "log") as running:
        running.wait_until_ready()
        clusters.create("first")
        eventually(lambda: clusters.is_ready("first"))
        draft = tmp_path / "draft"
        draft.write_text(bound("second"))
        draft.rename(token)
        assert api.call("DELETE", f"{secrets}/first").code == 200
        clusters.create("second")
        eventually(lambda: clusters.is_ready("second"))
        assert running.process.poll() is None
        for name in ("first", "second"):
            clusters.delete(name)
