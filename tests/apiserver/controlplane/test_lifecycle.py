"""A control plane starts, survives what happens to it, and leaves nothing behind."""

import signal
from pathlib import Path

import pytest

from clusters import pequod
from instances import eventually, foreground, runs

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
NOTHING = [".lock"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_running_control_plane_and_nothing_is_left(
    number: signal.Signals, tmp_path: Path
) -> None:
    with foreground(tmp_path / "state", "up") as plane:
        plane.wait_until_ready()
        pids = plane.pids()
        assert sorted(plane.state().components) == sorted(COMPONENTS)
        assert plane.end(number) == 0
        assert not any(runs(pid) for pid in pids)
        assert plane.left_behind() == NOTHING


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    with foreground(tmp_path / "state", "up") as plane:
        eventually((plane.root / "logs/kube-apiserver.log").exists)
        pids = plane.pids()
        assert plane.end(signal.SIGINT) == 130
        assert not any(runs(pid) for pid in pids)
        assert plane.left_behind() == NOTHING


def test_kill_9_of_the_parent_ends_every_component_and_the_next_start_cleans_up(
    tmp_path: Path,
) -> None:
    with foreground(tmp_path / "state", "up", "--node=none") as plane:
        plane.wait_until_ready()
        pids = plane.pids()
        assert plane.end(signal.SIGKILL) == -signal.SIGKILL
        eventually(lambda: not any(runs(pid) for pid in pids))
        assert plane.left_behind() == [*NOTHING, "default"]
    with foreground(tmp_path / "state", "up", "--node=none") as plane:
        plane.wait_until_ready()
        assert plane.end(signal.SIGINT) == 0
        assert plane.left_behind() == NOTHING


def test_a_component_that_is_killed_comes_back_with_everything_that_was_stored(
    tmp_path: Path,
) -> None:
    with foreground(tmp_path / "state", "up") as plane:
        plane.wait_until_ready()
        api = plane.api
        settings = {"metadata": {"name": "kept"}, "data": {"a": "b"}}
        assert api.create("/api/v1/namespaces/default/configmaps", settings).code == 201
        for name in COMPONENTS:
            plane.kill_component(name)
            eventually(plane.answers)
        assert api.get("/api/v1/namespaces/default/configmaps/kept").code == 200
        api.kubectl("create", "deployment", "after", "--image=any")
        api.kubectl("wait", "--for=condition=Available", "--timeout=60s", "deployment/after")


def test_two_run_side_by_side_each_with_its_own_ports_and_certificates(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with (
        foreground(state, "up", name="one") as one,
        foreground(state, "up", name="two") as two,
    ):
        one.wait_until_ready()
        two.wait_until_ready()
        assert one.api.server != two.api.server
        assert one.api.create("/api/v1/namespaces", {"metadata": {"name": "here"}}).code == 201
        assert two.api.get("/api/v1/namespaces/here").code == 404
        authorities = {(plane.root / "pki/ca.crt").read_bytes() for plane in (one, two)}
        assert len(authorities) == 2
        listed = pequod("dev", "status", state=state).stdout
        assert "one" in listed
        assert "two" in listed
        pequod("dev", "down", "--all", state=state)
        assert one.left_behind() == NOTHING


def test_detached_it_outlives_its_command_until_it_is_told_to_end(tmp_path: Path) -> None:
    state = tmp_path / "state"
    started = pequod("dev", "up", "--detach", "--crds", "--node=none", state=state)
    kubeconfig = state / "dev/default/kubeconfig"
    assert started.stdout == f"export KUBECONFIG={kubeconfig}\n"
    try:
        crds = pequod("dev", "kubectl", "get", "crds", "--output=name", state=state).stdout
        assert "transforms.platform.pequod.io" in crds
        printed = pequod("dev", "kubeconfig", state=state).stdout
        assert printed == kubeconfig.read_text()
    finally:
        pequod("dev", "down", state=state)
    assert [path.name for path in (state / "dev").iterdir()] == NOTHING
