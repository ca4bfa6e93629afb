"""The command `pequod`, as it is typed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from instances import eventually

_PROGRAM = Path(sys.executable).with_name("pequod")


@dataclass
class Running:
    """A command line that has not ended yet, and what it has said."""

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until something was said."""
        eventually(lambda: text in self.said)

    def interrupt(self) -> int:
        """Press Ctrl-C, and wait for the end."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


@dataclass
class Pequod:
    """Runs command lines to their end; the exit code must be the expected one."""

    folder: Path
    kubeconfig: Path | None = None

    @contextmanager
    def running(self, *arguments: str) -> Iterator["Running"]:
        """A command line that goes on until it is interrupted."""
        output = self.folder / "running.out"
        with output.open("w") as stream:
            process = subprocess.Popen(
                [_PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=self._environment(),
            )
        try:
            yield Running(process, output)
        finally:
            process.kill()
            process.wait()

    def _environment(self) -> dict[str, str]:
        own = {"DOCKER_CONFIG": str(self.folder / "no-docker")}
        if self.kubeconfig is not None:
            own["KUBECONFIG"] = str(self.kubeconfig)
        return {**os.environ, **own}

    def __call__(
        self, *arguments: str, stdin: str = "", code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [_PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self._environment(),
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done
