"""A contender of a race: a process under an account of its own, and instances that it works on."""

import asyncio
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.graphload import Graph
from bench.plane import PATIENCE, Plane, WrongError
from bench.racemeter import FLOW

from pequod.dev.components import LOOPBACK
from pequod.dev.kubeconfig import token_kubeconfig
from pequod.dev.kubectl import Kubectl
from pequod.dev.pki import write_private
from pequod.dev.ports import free_ports
from pequod.dev.programs import find_programs
from pequod.kube.client import Client
from pequod.kube.kinds import Kind
from pequod.kube.objects import Object

FLOW_SCHEMAS = Kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", False)
LEVEL = "workload-low"
"""The priority that accounts have anyway."""


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run, and where it says that it is ready."""

    command: Sequence[str]
    ready: str
    """A page that answers."""
    variables: dict[str, str] = field(default_factory=dict)


class Contender(Protocol):
    """Somebody who makes objects of instances."""

    name: str
    account: Account
    kind: Kind
    """Of the instances."""
    shape: type[Graph]
    """What tells whether an instance is Ready."""

    async def install(self, stage: "Stage") -> None:
        """Do everything that is done once for a cluster, but run."""

    async def prepare(self, stage: "Stage", namespace: str) -> None:
        """Do what instances in a namespace need; the namespace is there."""

    def instance(self, name: str, namespace: str) -> Object:
        """One instance."""

    def program(self, health: str, metrics: str) -> Program:
        """What is to run, with addresses that it may listen on."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the race is run."""

    plane: Plane
    admin: Client
    kubectl: Kubectl
    logs: Path

    @classmethod
    async def on(cls, plane: Plane, admin: Client, logs: Path) -> "Stage":
        """The stage on a control plane."""
        programs = await find_programs(("kubectl",), lambda _: None)
        return cls(plane, admin, Kubectl.of(programs, plane.layout), logs)

    async def kubeconfig(self, account: Account) -> Path:
        """How an account reaches the API server: with a token, as in a pod."""
        token = await self.kubectl.run(
            "create", "token", account.name, f"--namespace={account.namespace}", "--duration=24h"
        )
        path = self.plane.layout.config / f"race-{account.name}.kubeconfig"
        authority = (self.plane.layout.pki / "ca.crt").read_bytes()
        server = self.plane.state.server
        content = token_kubeconfig(
            name=account.name, server=server, authority=authority, token=token.strip()
        )
        write_private(path, content)
        return path

    async def count(self, accounts: Sequence[Account], namespaces: Sequence[str]) -> None:
        """Let the API server count what accounts ask for, and those that they act for."""
        users = [
            {
                "kind": "ServiceAccount",
                "serviceAccount": {"name": one.name, "namespace": one.namespace},
            }
            for one in accounts
        ]
        groups = [
            {"kind": "Group", "group": {"name": f"system:serviceaccounts:{one}"}}
            for one in namespaces
        ]
        everything = {
            "verbs": ["*"],
            "apiGroups": ["*"],
            "resources": ["*"],
            "namespaces": ["*"],
            "clusterScope": True,
        }
        paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        rule = {
            "subjects": [*users, *groups],
            "resourceRules": [everything],
            "nonResourceRules": [paths],
        }
        spec = {
            "priorityLevelConfiguration": {"name": LEVEL},
            "matchingPrecedence": 500,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [rule],
        }
        await self.admin.create(FLOW_SCHEMAS, {"metadata": {"name": FLOW}, "spec": spec})

    @asynccontextmanager
    async def running(self, contender: Contender, log: str) -> AsyncIterator[int]:
        """The contender's process for as long as the block lasts; gives its id."""
        ports = free_ports(LOOPBACK)
        program = contender.program(
            f"{LOOPBACK}:{ports.operator_health}", f"{LOOPBACK}:{ports.operator_metrics}"
        )
        path = self.logs / f"{log}.log"
        process = _started(program, path)
        try:
            await _until_ready(process, program.ready, f"{contender.name}, see {path}")
            yield process.pid
            if process.poll() is not None:
                raise WrongError(f"{contender.name} did not live through the race, see {path}")
        finally:
            await asyncio.to_thread(_ended, process)


def _started(program: Program, log: Path) -> subprocess.Popen[bytes]:
    with log.open("w") as output:
        return subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | program.variables,
        )


async def _until_ready(process: subprocess.Popen[bytes], page: str, who: str) -> None:
    began = time.monotonic()
    while not await asyncio.to_thread(_answers, page):
        await asyncio.sleep(0.1)
        if process.poll() is not None:
            raise WrongError(f"{who}: ended before it was ready")
        if time.monotonic() - began > PATIENCE:
            raise WrongError(f"{who}: did not become ready")


def _answers(page: str) -> bool:
    try:
        with urllib.request.urlopen(page, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=30)
