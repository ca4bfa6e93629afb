"""The command `pequod`, as it is typed."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Pequod:
    """Runs command lines to their end; the exit code must be the expected one."""

    folder: Path
    kubeconfig: Path | None = None

    def __call__(
        self, *arguments: str, stdin: str = "", code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        own = {
            "DOCKER_CONFIG": str(self.folder / "no-docker"),
        }
        if self.kubeconfig is not None:
            own["KUBECONFIG"] = str(self.kubeconfig)
        done = subprocess.run(
            [Path(sys.executable).with_name("pequod"), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, **own},
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done
