"""kubectl, for what it does best: applying manifests."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pequod.dev.failure import DevError
from pequod.dev.programs import Programs

_TIMEOUT = 60.0


class Kubectl:
    """kubectl with the credentials of one control plane."""

    def __init__(self, programs: Programs, kubeconfig: Path) -> None:
        self._programs = programs
        self._kubeconfig = kubeconfig

    async def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Apply objects that we ship."""
        if objects:
            document = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
            arguments = ("apply", "--server-side", "--validate=false", "--filename=-")
            await self.run(*arguments, stdin=document.encode())

    async def apply_folder(self, folder: Path) -> None:
        """Apply every manifest of a folder."""
        await self.run("apply", "--server-side", f"--filename={folder}")

    async def run(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run kubectl and return what it printed."""
        command = self._programs.command("kubectl", f"--kubeconfig={self._kubeconfig}", *arguments)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_TIMEOUT):
                output, errors = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise DevError(
                f"kubectl {arguments[0]} failed: {errors.decode(errors='replace').strip()}",
                next_step="The message above is the API server's own; mend what it names.",
            )
        return output.decode()
