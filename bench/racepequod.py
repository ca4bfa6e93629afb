"""Pequod as a contender: the operator as it is run by default, and Transforms of one module."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.graphload import TENANT, Graph, grant
from bench.plane import ACCOUNTS, ROOT
from bench.racing import Account, Program, Stage

from pequod.api.platform import Transform
from pequod.dev.places import shipped
from pequod.dev.programs import find_evaluator
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.kube.objects import Object

TRANSFORMS = Kind.of(Transform)
ACCOUNT = Account("pequod-system", "pequod-operator")
MODULE = ROOT / "bench/race.cue"


@dataclass(slots=True)
class Pequod:
    """The operator, and how it is run."""

    policies: str
    source: str
    """How Transforms refer to the module: inline or configmap."""
    store: Path
    """Where each process begins with a folder of its own: nothing is known from before."""
    name: str = "pequod"
    account: Account = ACCOUNT
    kind: Kind = TRANSFORMS
    shape: type[Graph] = Graph
    _kubeconfig: Path = Path()
    _evaluator: Path = Path()
    _runs: int = 0

    async def install(self, stage: Stage) -> None:
        """Make the account as a cluster of yours has it; the kinds are there."""
        self._evaluator = await find_evaluator(lambda _: None)
        await stage.kubectl.apply_folders(shipped("deploy/rbac"))
        self._kubeconfig = await stage.kubeconfig(self.account)

    async def prepare(self, stage: Stage, namespace: str) -> None:
        """Make the account that Transforms are executed for, and the module where it is kept."""
        place = {"namespace": namespace}
        await stage.admin.create(ACCOUNTS, {"metadata": {"name": TENANT, **place}})
        await grant(stage.admin, namespace, TENANT)
        if self.source == "configmap":
            data = {MODULE.name: MODULE.read_text()}
            await stage.admin.create(
                CONFIG_MAPS, {"metadata": {"name": MODULE.stem, **place}, "data": data}
            )

    def instance(self, name: str, namespace: str) -> Object:
        """One Transform."""
        reference = MODULE.read_text() if self.source == "inline" else MODULE.stem
        return {
            "apiVersion": TRANSFORMS.api_version,
            "kind": TRANSFORMS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "cueRef": {"type": self.source, "ref": reference},
                "input": {"name": name},
                "serviceAccountName": TENANT,
            },
        }

    def program(self, health: str, metrics: str) -> Program:
        """The operator with its defaults, but for where it listens and keeps things."""
        self._runs += 1
        options = {
            "kubeconfig": self._kubeconfig,
            "health-address": health,
            "metrics-address": metrics,
            "evaluator": self._evaluator,
            "policies": self.policies,
            "store": self.store / f"{self._runs}",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return Program(
            command=[sys.executable, "-m", "pequod", "operator", *flags],
            ready=f"http://{health}/readyz",
        )
