"""What the embedded control plane costs: time to start and to end, memory, size.

`make bench` prints one row a run; the README quotes them.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from pequod.dev.instances import State
from pequod.dev.places import cache_dir

RUNS = 5
PEQUOD = (sys.executable, "-m", "pequod", "dev")
MIB = 1024**2


def main() -> None:
    """Start and end a control plane a few times, and look at it in between."""
    print(f"programs: {_size_of_programs() / MIB:.0f} MiB in {cache_dir()}")
    print(f"{'run':>3} {'up, s':>7} {'down, s':>8}  memory (PSS), MiB")
    for run in range(1, RUNS + 1):
        with tempfile.TemporaryDirectory() as state:
            environment = os.environ | {"PEQUOD_STATE_DIR": state}
            up = _timed(environment, "up", "--detach", "--crds")
            memory = _memory(Path(state) / "dev/default/state.json")
            down = _timed(environment, "down")
        total = sum(memory.values())
        parts = ", ".join(f"{name} {size / MIB:.0f}" for name, size in sorted(memory.items()))
        print(f"{run:>3} {up:>7.1f} {down:>8.1f}  {total / MIB:.0f}: {parts}")


def _timed(environment: dict[str, str], *arguments: str) -> float:
    begin = time.monotonic()
    subprocess.run([*PEQUOD, *arguments], check=True, capture_output=True, env=environment)
    return time.monotonic() - begin


def _memory(state_file: Path) -> dict[str, int]:
    state = msgspec.json.decode(state_file.read_bytes(), type=State)
    pids = {name: process.pid for name, process in state.components.items()}
    return {name: _proportional(pid) for name, pid in (pids | _supervisor(state)).items()}


def _supervisor(state: State) -> dict[str, int]:
    return {"supervisor": state.supervisor.pid}


def _proportional(pid: int) -> int:
    """The process's own memory and its share of what it has in common with the others."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024


def _size_of_programs() -> int:
    return sum(path.stat().st_size for path in cache_dir().rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
