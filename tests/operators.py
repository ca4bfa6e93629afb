"""Operators run as a user runs them: as processes, under the account that we ship."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from clusters import PEQUOD, Api
from instances import PATIENCE, eventually
from pequod.dev.kubeconfig import token_kubeconfig
from pequod.dev.places import shipped
from pequod.dev.ports import free_ports

NAMESPACE = "pequod-system"
ACCOUNT = "pequod-operator"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/pequod-operator"
SHORT_LEASE = (
    "--lease-duration=4s",
    "--lease-renew-deadline=2s",
    "--lease-retry-period=500ms",
)


def operator_token(api: Api, *bound: str) -> str:
    """A token of the operator's account, which is made with its rights if need be."""
    api.kubectl("apply", "--server-side", f"--filename={shipped('deploy/rbac')}")
    where = f"--namespace={NAMESPACE}"
    return api.kubectl("create", "token", ACCOUNT, where, *bound).stdout.strip()


def operator_kubeconfig(api: Api, path: Path) -> Path:
    """A kubeconfig of the operator's account."""
    authority = (api.kubeconfig.parent / "pki/ca.crt").read_bytes()
    token = operator_token(api)
    path.write_bytes(
        token_kubeconfig(name="operator", server=api.server, authority=authority, token=token)
    )
    return path


def holder(api: Api) -> str:
    """Who has the Lease."""
    spec = api.get(LEASE).body.get("spec", {})
    return str(spec.get("holderIdentity") or "")


class Operator:
    """One `pequod operator`."""

    def __init__(self, kubeconfig: Path, log: Path, *options: str) -> None:
        ports = free_ports("127.0.0.1")
        self.health = f"http://127.0.0.1:{ports.operator_health}"
        self.metrics_url = f"http://127.0.0.1:{ports.operator_metrics}/metrics"
        self._log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *PEQUOD,
                    "operator",
                    f"--kubeconfig={kubeconfig}",
                    f"--health-address=127.0.0.1:{ports.operator_health}",
                    f"--metrics-address=127.0.0.1:{ports.operator_metrics}",
                    "--allow-local-clusters",
                    *SHORT_LEASE,
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        lines = self._log.read_bytes().splitlines()
        return [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]

    @property
    def text(self) -> str:
        return self._log.read_text()

    @property
    def identity(self) -> str:
        """Its name in the election; empty until it has led once."""
        leads = [line for line in self.said if line["event"] == "leading"]
        return str(leads[-1]["identity"]) if leads else ""

    def count(self, event: str) -> int:
        """How often it said something."""
        return sum(line["event"] == event for line in self.said)

    def page(self, path: str) -> tuple[int, str]:
        """A page of its health server; 0 when it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.health}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metrics(self) -> str:
        with urllib.request.urlopen(self.metrics_url, timeout=5) as answer:
            return str(answer.read().decode())

    def ready(self) -> bool:
        assert self.process.poll() is None, self.text
        return self.page("/readyz")[0] == 200

    def wait_until_ready(self) -> None:
        eventually(self.ready)

    def wait_until_leading(self) -> None:
        eventually(lambda: bool(self.identity))

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.send(number)
        return self.process.wait(timeout=PATIENCE)


@contextmanager
def operator(kubeconfig: Path, log: Path, *options: str) -> Iterator[Operator]:
    """An operator that is gone after the block, whatever happened in it."""
    running = Operator(kubeconfig, log, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.send(signal.SIGCONT)
            running.send(signal.SIGTERM)
        try:
            running.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait(timeout=PATIENCE)


class ClusterObjects:
    """The Clusters of one namespace, as an administrator sees them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self._path = f"/apis/ajj.io/v1/namespaces/{namespace}/clusters"
        self._secrets = f"/api/v1/namespaces/{namespace}/secrets"

    def create(self, name: str, *, secret: str | None = None, **metadata: object) -> None:
        spec: dict[str, object] = {}
        if secret is not None:
            spec["kubeconfigSecretRef"] = {"name": secret, "key": "value"}
        body = {
            "apiVersion": "ajj.io/v1",
            "kind": "Cluster",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        answer = self.api.create(self._path, body)
        assert answer.code == 201, answer.message

    def patch(self, name: str, body: dict[str, Any]) -> None:
        answer = self.api.patch(f"{self._path}/{name}", body)
        assert answer.code == 200, answer.message

    def delete(self, name: str) -> None:
        assert self.api.call("DELETE", f"{self._path}/{name}").code == 200

    def get(self, name: str) -> dict[str, Any]:
        answer = self.api.get(f"{self._path}/{name}")
        assert answer.code == 200, answer.message
        return answer.body

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.get(name)["status"]
        return status

    def condition(self, name: str, kind: str = "Ready") -> dict[str, Any]:
        conditions = self.status(name).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def reason(self, name: str, kind: str = "Ready") -> str:
        return str(self.condition(name, kind).get("reason", ""))

    def is_ready(self, name: str) -> bool:
        return bool(self.condition(name).get("status") == "True")

    def put_secret(self, name: str, kubeconfig: str | bytes, *, key: str = "value") -> None:
        text = kubeconfig.decode() if isinstance(kubeconfig, bytes) else kubeconfig
        body = {"metadata": {"name": name}, "stringData": {key: text}}
        answer = self.api.create(self._secrets, body)
        if answer.code == 409:
            answer = self.api.patch(f"{self._secrets}/{name}", {"stringData": {key: text}})
        assert answer.code in {200, 201}, answer.message
