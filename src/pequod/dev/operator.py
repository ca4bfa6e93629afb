"""The operator as a part of a control plane: under its own account, and kept running."""

import asyncio
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from pequod.dev.components import LOOPBACK, Plan
from pequod.dev.keeper import Component
from pequod.dev.kubeconfig import token_kubeconfig
from pequod.dev.kubectl import Kubectl
from pequod.dev.pki import write_private
from pequod.dev.places import shipped

NAME = "operator"
_A_YEAR = "8760h"
_QUESTION_LIMIT = 2.0


def operator(plan: Plan) -> Component:
    """The operator of a plan; whatever an ordinary user may not do, it may not do either."""
    health, metrics = _addresses(plan)
    return Component(
        name=NAME,
        command=(
            sys.executable,
            "-m",
            "pequod",
            "operator",
            f"--kubeconfig={plan.layout.kubeconfig_of(NAME)}",
            f"--health-address={health}",
            f"--metrics-address={metrics}",
            "--allow-local-clusters",
            "--allow-local-sources",
            "--allow-local-chains",
            "--chain-rpc=http://{address}:{port}",
        ),
        listens=(
            (LOOPBACK, plan.ports.operator_health),
            (LOOPBACK, plan.ports.operator_metrics),
        ),
    )


async def write_operator_account(plan: Plan, kubectl: Kubectl, *, name: str) -> None:
    """Make the operator's account as a cluster of yours has it, and a kubeconfig for it."""
    await kubectl.apply_folders(shipped("deploy/rbac"))
    namespace, account = await asyncio.to_thread(_account, shipped("deploy/rbac/operator.yaml"))
    arguments = ("create", "token", account, f"--namespace={namespace}")
    token = await kubectl.run(*arguments, f"--duration={_A_YEAR}")
    content = token_kubeconfig(
        name=f"pequod-{name}",
        server=plan.server,
        authority=(plan.layout.pki / "ca.crt").read_bytes(),
        token=token.strip(),
    )
    write_private(plan.layout.kubeconfig_of(NAME), content)


async def operator_ready(plan: Plan) -> bool:
    """Whether the operator says that it can reconcile."""
    return await asyncio.to_thread(_answers_ok, f"http://{_addresses(plan)[0]}/readyz")


def _account(manifest: Path) -> tuple[str, str]:
    documents = yaml.load_all(manifest.read_text(), Loader=yaml.CSafeLoader)
    account = next(document for document in documents if document["kind"] == "ServiceAccount")
    return account["metadata"]["namespace"], account["metadata"]["name"]


def _addresses(plan: Plan) -> tuple[str, str]:
    ports = plan.ports
    return f"{LOOPBACK}:{ports.operator_health}", f"{LOOPBACK}:{ports.operator_metrics}"


def _answers_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_QUESTION_LIMIT) as answer:  # noqa: S310 -- ours
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
