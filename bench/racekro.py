"""kro as a contender: built from its module, with its limits off and many workers.

It runs with the values of its chart where those are not what slows it down. Its readiness asks for
no more than that every object is applied: it need not wait for the Deployment, as Pequod does.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from bench.graphload import KINDS, Graph, Status
from bench.plane import ACCOUNTS, PATIENCE, ROOT, WrongError
from bench.racing import Account, Program, Stage

from pequod.dev.commands import run
from pequod.dev.gomodule import GoModule, ensure_built
from pequod.kube.kinds import NAMESPACES, Kind
from pequod.kube.objects import Object

VERSION = "v0.9.4"
MODULE = "github.com/kubernetes-sigs/kro"
KRO = GoModule(
    name="bench-kro",
    version=VERSION,
    packages=(("kro", f"{MODULE}/cmd/controller"),),
    folder=ROOT / "bench/kro",
)
DEFINITIONS = Kind(
    "kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions", False
)
INSTANCES = Kind("kro.run", "v1alpha1", "Race", "races")
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)
CLUSTER_BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False
)
ACCOUNT = Account("kro-system", "kro")
UNLIMITED = 1_000_000
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
_RULES = (
    ("kro.run", ("resourcegraphdefinitions", "races")),
    ("kro.run", ("resourcegraphdefinitions/status", "races/status")),
    ("kro.run", ("resourcegraphdefinitions/finalizers", "races/finalizers")),
    ("internal.kro.run", ("graphrevisions", "graphrevisions/status", "graphrevisions/finalizers")),
    ("apiextensions.k8s.io", ("customresourcedefinitions",)),
    *((kind.group, (kind.plural,)) for kind in KINDS),
)


class _Status(Status, frozen=True):
    state: str = ""


class Instance(Graph, frozen=True):
    """What is read of an instance."""

    status: _Status = _Status()

    @property
    def ready(self) -> bool:
        """Whether kro says that all of it is there."""
        return self.status.state == "ACTIVE" and any(
            one.type == "Ready" and one.status == "True" for one in self.status.conditions
        )


@dataclass(slots=True)
class Kro:
    """Kro, and how it is tuned."""

    workers: int
    requeue: str
    """How long it waits between passes if nothing wakes it."""
    name: str = "kro"
    account: Account = ACCOUNT
    kind: Kind = INSTANCES
    shape: type[Graph] = Instance
    _program: Path = Path()
    _kubeconfig: Path = Path()

    async def install(self, stage: Stage) -> None:
        """Build it, and make its kinds, its account with the rights it needs, and the definition.

        It makes the instances' CRD when it runs for the first time.
        """
        self._program = await ensure_built(KRO, lambda _: None) / "kro"
        await stage.kubectl.apply_folders(await _folder() / "helm/crds")
        await _make_account(stage)
        self._kubeconfig = await stage.kubeconfig(self.account)
        definition = yaml.load(
            (ROOT / "bench/kro/definition.yaml").read_text(), Loader=yaml.CSafeLoader
        )
        await stage.admin.create(DEFINITIONS, definition)
        async with stage.running(self, "kro-install"):
            await _until_active(stage)

    async def prepare(self, stage: Stage, namespace: str) -> None:
        """Nothing: its account may do everything everywhere that it has to."""

    def instance(self, name: str, namespace: str) -> Object:
        """One instance of the definition."""
        metadata = {"name": name, "namespace": namespace}
        return {
            "apiVersion": INSTANCES.api_version,
            "kind": INSTANCES.kind,
            "metadata": metadata,
            "spec": {"name": name},
        }

    def program(self, health: str, metrics: str) -> Program:
        """The controller without limits; its log is as terse as in its chart."""
        options = {
            "health-probe-bind-address": health,
            "metrics-bind-address": metrics,
            "client-qps": UNLIMITED,
            "client-burst": UNLIMITED,
            "dynamic-controller-rate-limiter-rate-limit": UNLIMITED,
            "dynamic-controller-rate-limiter-burst-limit": UNLIMITED,
            "dynamic-controller-concurrent-reconciles": self.workers,
            "instance-requeue-interval": self.requeue,
            "zap-devel": "false",
            "zap-log-level": "info",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return Program(
            command=[str(self._program), *flags],
            ready=f"http://{health}/readyz",
            variables={"KUBECONFIG": str(self._kubeconfig)},
        )


async def _folder() -> Path:
    """Where Go keeps the source of the module, which is there once it was built."""
    step = "Look at the output of `go mod download` in bench/kro."
    await run("go", f"-C={KRO.source}", "mod", "download", MODULE, next_step=step)
    listing = ("list", "-m", "-f={{.Dir}}", MODULE)
    return Path((await run("go", f"-C={KRO.source}", *listing, next_step=step)).strip())


async def _make_account(stage: Stage) -> None:
    admin, place = stage.admin, {"name": ACCOUNT.name, "namespace": ACCOUNT.namespace}
    await admin.create(NAMESPACES, {"metadata": {"name": ACCOUNT.namespace}})
    await admin.create(ACCOUNTS, {"metadata": place})
    rules = [
        {"apiGroups": [group], "resources": [*resources], "verbs": _ALL}
        for group, resources in _RULES
    ]
    name = {"name": ACCOUNT.name}
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, **name}
    subjects = [{"kind": "ServiceAccount", **place}]
    await admin.create(CLUSTER_ROLES, {"metadata": name, "rules": rules})
    await admin.create(CLUSTER_BINDINGS, {"metadata": name, "roleRef": role, "subjects": subjects})


async def _until_active(stage: Stage) -> None:
    began = time.monotonic()
    while True:
        definition = await stage.admin.get(DEFINITIONS, "race")
        status = definition.get("status", {})
        if status.get("state") == "Active":
            return
        if time.monotonic() - began > PATIENCE / 10:
            raise WrongError(f"kro's definition does not become active: {status}")
        await asyncio.sleep(0.2)
