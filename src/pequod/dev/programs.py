"""Where each program of a control plane comes from.

In this order: the folder that `KUBEBUILDER_ASSETS` names, the cache, a build from source.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pequod.dev.builds import Report
from pequod.dev.failure import DevError
from pequod.dev.gomodule import GoModule, ensure_built

KUBERNETES_VERSION = "v1.36.3"

_VERSION = "k8s.io/component-base/version"
CONTROL_PLANE = GoModule(
    name="controlplane",
    version=KUBERNETES_VERSION,
    packages=(("controlplane", "."),),
    linker_flags=(
        f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION}"
        f" -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
    ),
)
NODE = GoModule(name="node", version="v1", packages=(("node", "."), ("pause", "./pause")))
EVALUATOR = GoModule(name="evaluator", version="v1", packages=(("evaluator", "."),))

BASIC = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
SIMULATED_NODE = ("kwok", "kwok-stages")
REAL_NODE = ("kubelet", "kube-proxy")
NODE_ADD_ONS = ("coredns", "registry")


@dataclass(frozen=True)
class Programs:
    """The command that starts each program."""

    commands: dict[str, tuple[str, ...]]

    def command(self, name: str, *arguments: str) -> tuple[str, ...]:
        """The command line of a program."""
        return (*self.commands[name], *arguments)


async def find_add_ons(report: Report) -> Programs:
    """The programs that only a real node needs."""
    folder = await ensure_built(NODE, report)
    commands = {name: (str(folder / "node"), name) for name in NODE_ADD_ONS}
    return Programs(commands | {"pause": (str(folder / "pause"),)})


async def find_evaluator(report: Report) -> Path:
    """The program that evaluates CUE, Helm, kustomize, Rego and CEL."""
    return await ensure_built(EVALUATOR, report) / "evaluator"


async def find_programs(names: Iterable[str], report: Report) -> Programs:
    """Find every named program, building what is neither given nor cached."""
    wanted = set(names)
    commands: dict[str, tuple[str, ...]] = {
        name: (str(path),) for name, path in _given() if name in wanted
    }
    missing = wanted - commands.keys()
    if missing:
        built = await ensure_built(CONTROL_PLANE, report) / "controlplane"
        commands |= {name: (str(built), name) for name in missing}
    return Programs(commands)


def _given() -> list[tuple[str, Path]]:
    """The programs that the environment names."""
    value = os.environ.get("KUBEBUILDER_ASSETS")
    if not value:
        return []
    if not Path(value).is_dir():
        raise DevError(
            f"KUBEBUILDER_ASSETS names {value}, which is not a folder",
            next_step="Unset it, or set it to the folder that holds etcd and kube-apiserver.",
        )
    return [(path.name, path) for path in Path(value).iterdir() if os.access(path, os.X_OK)]
