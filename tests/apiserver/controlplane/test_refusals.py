"""What cannot work ends with one sentence, a next step, exit code 1, and nothing half-started."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import PEQUOD, SharedControlPlane, pequod
from instances import foreground
from pequod.dev.places import cache_dir
from pequod.dev.programs import CONTROL_PLANE

WITHOUT_GO = "/nowhere"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory of which nothing may be left but its lock."""
    place = tmp_path / "state"
    yield place
    left = [path.name for path in (place / "dev").iterdir()] if (place / "dev").exists() else []
    assert left in ([], [".lock"])


def refused(*arguments: str, state: Path, **environment: str) -> str:
    """The whole text of a refusal: a sentence that starts with `error:` and a next step."""
    result = pequod(*arguments, state=state, check=False, **environment)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1
    problem, next_step = result.stderr[result.stderr.index("error: ") :].strip().rsplit("\n", 1)
    assert problem
    assert next_step.endswith(".")
    return f"{problem}\n{next_step}"


@pytest.mark.parametrize("detach", [(), ("--detach",)], ids=["foreground", "detached"])
def test_a_port_that_is_taken(state: Path, detach: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = refused("dev", "up", f"--port={port}", *detach, state=state)
    assert f"port {port} of 127.0.0.1 cannot be used: Address already in use" in text
    assert "Leave --port away" in text


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with foreground(state, "up", "--node=none") as plane:
        plane.wait_until_ready()
        text = refused("dev", "up", "--node=none", state=state)
        assert "a control plane named default is running already" in text
        assert "pequod dev down --name default" in text
        assert plane.answers()


def test_a_name_that_cannot_be_one(state: Path) -> None:
    assert "cannot name a control plane" in refused("dev", "up", "--name=../x", state=state)


def test_nothing_to_end(state: Path) -> None:
    text = refused("dev", "down", state=state)
    assert "no control plane named default is running" in text


def test_no_go_toolchain_and_nothing_in_the_cache(state: Path, tmp_path: Path) -> None:
    text = refused(
        "dev", "up", state=state, PATH=WITHOUT_GO, PEQUOD_CACHE_DIR=str(tmp_path / "cache")
    )
    assert "there is no Go toolchain" in text
    assert "Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS" in text


def test_a_damaged_cache_is_not_run(state: Path, tmp_path: Path) -> None:
    """What is damaged is built again; where that is not possible, nothing is started."""
    build = cache_dir() / CONTROL_PLANE.key()
    damaged = tmp_path / "cache" / build.name
    shutil.copytree(build, damaged)
    with (damaged / "controlplane").open("r+b") as program:
        program.seek(10_000)
        program.write(b"damage")
    text = refused(
        "dev", "up", state=state, PATH=WITHOUT_GO, PEQUOD_CACHE_DIR=str(tmp_path / "cache")
    )
    assert "must be built" in text


def test_a_cache_that_cannot_be_written_and_holds_nothing(state: Path) -> None:
    text = refused("dev", "up", state=state, PEQUOD_CACHE_DIR="/proc/nowhere")
    assert "/proc/nowhere cannot be written" in text
    assert "Set PEQUOD_CACHE_DIR" in text


def test_a_state_directory_that_cannot_be_written() -> None:
    text = refused("dev", "up", state=Path("/proc/nowhere"))
    assert "/proc/nowhere/dev cannot be written" in text
    assert "Set PEQUOD_STATE_DIR" in text


def test_assets_that_are_not_there(state: Path) -> None:
    text = refused("dev", "up", state=state, KUBEBUILDER_ASSETS="/nowhere")
    assert "KUBEBUILDER_ASSETS names /nowhere, which is not a folder" in text


def test_a_real_node_without_root(state: Path) -> None:
    # In a fresh user namespace root is nobody, though its files are still its own.
    nobody = ["unshare", "--user"] if os.geteuid() == 0 else []
    result = subprocess.run(
        [*nobody, *PEQUOD, "dev", "up", "--node=real"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PEQUOD_STATE_DIR": str(state)},
    )
    assert result.returncode == 1
    assert "error: a real node needs root" in result.stderr
    assert "use --node simulated" in result.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [("not: [valid", "kubectl config failed"), ("", "the kubeconfig names no cluster")],
)
def test_installing_with_a_kubeconfig_that_says_nothing(
    content: str, problem: str, state: Path, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(content)
    assert problem in refused("install", state=state, KUBECONFIG=str(kubeconfig))


def test_installing_asks_and_therefore_needs_a_terminal(
    state: Path, control_plane: SharedControlPlane
) -> None:
    kubeconfig = str(control_plane.api.kubeconfig)
    text = refused("install", state=state, KUBECONFIG=kubeconfig)
    assert "can only be asked in a terminal" in text
    assert "--yes" in text
    assert "has no context elsewhere" in refused(
        "install", "--context=elsewhere", "--yes", state=state, KUBECONFIG=kubeconfig
    )
    installed = pequod(
        "install", "--context=pequod-shared", "--yes", state=state, KUBECONFIG=kubeconfig
    )
    assert "transforms.platform.pequod.io" in installed.stdout
    policy = "validatingadmissionpolicy.admissionregistration.k8s.io"
    assert f"{policy}/resourcegraphs.platform.pequod.io" in installed.stdout
