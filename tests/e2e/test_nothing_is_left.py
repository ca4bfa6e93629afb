"""A real node changes the machine while it runs; afterwards the machine is as it was."""

import signal
import subprocess
from pathlib import Path

from clusters import pequod
from instances import Foreground, eventually, foreground, runs
from pequod.dev.node import settings

PLACES = (
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/usr/libexec/kubernetes",
    "/tmp/hostpath_pv",
    "/run/containerd",
)


def machine() -> dict[str, object]:
    """Everything of this machine that a node could leave a trace in."""
    return {
        "devices": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "rules": _printed("iptables-save"),
        "routes": _printed("ip", "route"),
        "mounts": sorted(
            line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
        ),
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob("**/pequod*"))),
        "settings": settings.current(),
        "places": [place for place in PLACES if Path(place).exists()],
    }


def _printed(*command: str) -> list[str]:
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Counters and the time of printing are no traces.
    return [line.split("[")[0] for line in text.splitlines() if not line.startswith("#")]


def _start_with_a_pod(state: Path, name: str) -> Foreground:
    plane = Foreground(state, "up", "--node=real", name=name)
    plane.wait_until_ready()
    api = plane.api
    api.kubectl("run", "pod", "--image=pequod.io/pause:1", "--image-pull-policy=Never")
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/pod")
    return plane


def test_down_and_kill_9_leave_the_machine_as_it_was(tmp_path: Path) -> None:
    """The node that came first goes first, so that the second has seen the first one's changes."""
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    _run_once(state)  # whatever iptables itself sets up on its first use is there from now on
    before = machine()
    one = _start_with_a_pod(state, "one")
    with foreground(elsewhere, "up", "--node=real", name="two") as two:
        two.wait_until_ready()
        assert one.api.server != two.api.server
        assert machine() != before
        pids = one.pids()
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
        eventually(lambda: not any(runs(pid) for pid in pids))
        with foreground(elsewhere, "up", "--node=real", name="three") as three:
            three.wait_until_ready()
            pequod("dev", "status", state=state)
            assert one.left_behind() == [".lock"]
            assert two.answers()
            assert three.answers()
            assert three.node_is_ready()
            assert three.end(signal.SIGTERM) == 0
        assert two.end(signal.SIGTERM) == 0
    assert machine() == before


def _run_once(state: Path) -> None:
    with foreground(state, "up", "--node=real") as plane:
        plane.wait_until_ready()
        assert plane.end(signal.SIGTERM) == 0


def test_a_disk_that_is_too_small_is_refused_before_anything_starts(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)], check=True)
    try:
        result = pequod("dev", "up", state=small / "state", check=False)
        assert result.returncode == 1
        assert "error: a control plane needs 256 MiB" in result.stderr
        assert "Free some space, or set PEQUOD_STATE_DIR" in result.stderr
        assert [path.name for path in (small / "state/dev").iterdir()] == [".lock"]
    finally:
        subprocess.run(["umount", str(small)], check=True)
