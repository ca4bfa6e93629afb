"""kubectl, for what it does best: applying manifests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from pequod.dev.commands import attempt
from pequod.dev.failure import DevError
from pequod.dev.layout import Layout
from pequod.dev.programs import Programs

KUBECTL_CACHE = "kubectl"
"""Where kubectl keeps what it knows of a control plane, in that one's directory."""


class Kubectl:
    """kubectl with some options, such as whose credentials to use."""

    def __init__(self, programs: Programs, *options: str) -> None:
        self._command = programs.command("kubectl", *options)

    @classmethod
    def of(cls, programs: Programs, layout: Layout) -> Self:
        """Kubectl for one control plane; what it remembers of it ends with it."""
        cache = layout.root / KUBECTL_CACHE
        return cls(programs, f"--kubeconfig={layout.kubeconfig}", f"--cache-dir={cache}")

    async def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Apply objects that we ship."""
        if objects:
            document = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
            arguments = ("apply", "--server-side", "--validate=false", "--filename=-")
            await self.run(*arguments, stdin=document.encode())

    async def apply_folder(self, folder: Path) -> str:
        """Apply every manifest of a folder, and return what kubectl says about them."""
        return await self.run("apply", "--server-side", f"--filename={folder}")

    async def install_crds(self, folder: Path) -> str:
        """Apply CRDs, return once their kinds can be used, and say what was done."""
        said = await self.apply_folder(folder)
        established = ("--for=condition=Established", "--timeout=30s")
        await self.run("wait", *established, f"--filename={folder}")
        return said

    async def run(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run kubectl and return what it printed."""
        result = await attempt(*self._command, *arguments, stdin=stdin)
        if result.code != 0:
            raise DevError(
                f"kubectl {arguments[0]} failed: {result.errors.strip().removeprefix('error: ')}",
                next_step="Check that the kubeconfig can be read and that its cluster answers.",
            )
        return result.output
