"""Control planes that tests start, look at and kill."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from clusters import PEQUOD, Api, pequod
from pequod.dev.instances import State

PATIENCE = 60.0


def eventually(condition: Callable[[], bool], *, within: float = PATIENCE) -> None:
    """Wait for something to become true; fail when it does not."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "did not become true in time"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Foreground:
    """`pequod dev up` or `dev run` in the foreground, as in a terminal."""

    def __init__(self, state: Path, *arguments: str, name: str = "default") -> None:
        self.state_dir = state
        self.root = state / "dev" / name
        self.output = state / f"{name}.out"
        state.mkdir(exist_ok=True)
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [*PEQUOD, "dev", *arguments, f"--name={name}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PEQUOD_STATE_DIR": str(state)},
            )

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def api(self) -> Api:
        return Api(self.root / "kubeconfig")

    def state(self) -> State:
        return msgspec.json.decode((self.root / "state.json").read_bytes(), type=State)

    def pids(self) -> list[int]:
        return [process.pid for process in self.state().components.values()]

    def wait_until_ready(self) -> None:
        eventually(lambda: "export KUBECONFIG=" in self.said or self.process.poll() is not None)
        assert self.process.poll() is None, self.said

    def kill_component(self, name: str) -> None:
        """Kill a component with SIGKILL and wait until another process has taken its place."""
        before = self.state().components[name].pid
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self._pid(name) not in {before, None})

    def _pid(self, name: str) -> int | None:
        process = self.state().components.get(name)
        return process.pid if process else None

    def ready(self) -> bool:
        """Whether the API server says that it can serve everything again."""
        try:
            return self.api.kubectl("get", "--raw=/readyz", check=False).stdout == "ok"
        except OSError:
            return False

    def answers(self) -> bool:
        try:
            return self.api.get("/api/v1/namespaces/default").code == 200
        except OSError:
            return False

    def node_is_ready(self) -> bool:
        """Whether the real node's link carries what its kubelet has to say."""
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/real"

        def renewed() -> object:
            return self.api.get(path).body.get("spec", {}).get("renewTime")

        eventually(lambda: renewed() is not None)
        first = renewed()
        eventually(lambda: renewed() != first)
        return True

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE)

    def execute(self, *command: str) -> str:
        """Run a program inside the real node, as `pequod dev exec` does."""
        return pequod("dev", "exec", "--", *command, state=self.state_dir).stdout

    def left_behind(self) -> list[str]:
        return sorted(path.name for path in (self.state_dir / "dev").iterdir())


@contextmanager
def foreground(state: Path, *arguments: str, name: str = "default") -> Iterator[Foreground]:
    """A control plane in the foreground that is gone after the block, whatever happened in it."""
    running = Foreground(state, *arguments, name=name)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(timeout=PATIENCE)
        pequod("dev", "status", state=state)
