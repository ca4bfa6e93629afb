"""kubectl, for what it does best: applying manifests."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from pequod.api import KINDS
from pequod.api.meta import CATEGORY
from pequod.dev.commands import attempt
from pequod.dev.failure import DevError
from pequod.dev.layout import Layout
from pequod.dev.places import shipped
from pequod.dev.programs import Programs

_DISCOVERY_TIMEOUT = 30.0
_POLL = 0.05


class Kubectl:
    """kubectl with some options, such as whose credentials to use."""

    def __init__(self, programs: Programs, *options: str) -> None:
        self._command = programs.command("kubectl", *options)

    @classmethod
    def of(cls, programs: Programs, layout: Layout) -> Self:
        """Kubectl for one control plane; what it remembers of it ends with it."""
        cache = layout.kubectl_cache
        return cls(programs, f"--kubeconfig={layout.kubeconfig}", f"--cache-dir={cache}")

    async def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Apply objects that we ship."""
        if objects:
            document = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
            arguments = ("apply", "--server-side", "--validate=false", "--filename=-")
            await self.run(*arguments, stdin=document.encode())

    async def apply_folders(self, *folders: Path) -> str:
        """Apply every manifest of some folders, and return what kubectl says about them."""
        names = (f"--filename={folder}" for folder in folders)
        return await self.run("apply", "--server-side", *names)

    async def install_kinds(self) -> str:
        """Apply our CRDs and the policy over who writes what, and say what was done.

        Afterwards the kinds can be found. The policy takes effect a moment later; it only keeps
        others from writing, so nothing of ours has to wait for it.
        """
        said = await self.apply_folders(shipped("deploy/admission"), shipped("deploy/crds"))
        ours = {resource.definition.name for resource in KINDS}
        try:
            async with asyncio.timeout(_DISCOVERY_TIMEOUT):
                # What kubectl remembers from before would hide the new kinds; this also renews it.
                while not ours <= await self._listed_kinds():
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            raise DevError(
                f"{_DISCOVERY_TIMEOUT:.0f} s after their CRDs were applied, the API server does "
                f"not list {', '.join(sorted(ours))}",
                next_step="Look at the conditions of the CRDs: `kubectl describe crds`.",
            ) from error
        return said

    async def _listed_kinds(self) -> set[str]:
        """Our kinds as the API server lists them; another API that is away is no reason to fail."""
        listing = ("api-resources", f"--categories={CATEGORY}", "--output=name")
        return {*(await attempt(*self._command, *listing)).output.split()}

    async def run(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run kubectl and return what it printed."""
        result = await attempt(*self._command, *arguments, stdin=stdin)
        if result.code != 0:
            raise DevError(
                f"kubectl {arguments[0]} failed: {result.errors.strip().removeprefix('error: ')}",
                next_step="Check that the kubeconfig can be read and that its cluster answers.",
            )
        return result.output
