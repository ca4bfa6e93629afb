"""`make run`: a control plane with the samples in it, shown live, and gone after Ctrl-C."""

import os
import pty
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from clusters import PEQUOD
from instances import eventually, foreground


def test_the_samples_become_ready_and_what_to_try_is_said(tmp_path: Path) -> None:
    with foreground(tmp_path / "state", "run", "--node=simulated") as plane:
        plane.wait_until_ready()
        ready = r"Cluster +default +in-cluster +True +Kubernetes v[0-9.]+ with 1 node"
        eventually(lambda: re.search(ready, plane.said) is not None)
        graph = r"ResourceGraph +default +by-hand +Ready +True +4 objects ready"
        eventually(lambda: re.search(graph, plane.said) is not None)
        transform = r"Transform +default +hello +Ready +True +4 objects ready"
        eventually(lambda: re.search(transform, plane.said) is not None)
        tree = r"Transform/hello  Ready  4 objects ready\n└── ResourceGraph/transform-hello  Ready"
        eventually(lambda: re.search(tree, plane.said) is not None)
        assert "Deployment/hello  Ready" in plane.said
        for word in ("tree", "rollback", "plan"):
            assert re.search(rf"pequod\S* {word} \S", plane.said), word
        for word in ("delete service", "patch transform", "describe resourcegraph"):
            assert f"kubectl {word} " in plane.said
        assert plane.end(signal.SIGINT) == 0
        assert plane.left_behind() == [".lock"]


def test_in_a_terminal_the_table_is_live_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    """Ctrl-C is a character here, and the terminal makes the signal of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *PEQUOD, "dev", "run", "--node=none"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"PEQUOD_STATE_DIR": str(tmp_path), "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while b"in-cluster" not in seen:
        seen += os.read(ours, 65536)
    os.write(ours, b"\x03")
    with suppress(OSError):  # The terminal is gone with the last process that had it.
        while chunk := os.read(ours, 65536):
            seen += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0, seen.decode()
    assert b"Traceback" not in seen
    assert [path.name for path in (tmp_path / "dev").iterdir()] == [".lock"]
