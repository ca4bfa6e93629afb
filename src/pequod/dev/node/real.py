"""A real node: containerd, kubelet and kube-proxy in namespaces of their own; DNS and a registry.

The namespaces hold everything: the node's mounts, devices, packet filter rules and processes end
with its first process, however that ends.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from pequod.dev.commands import attempt, run
from pequod.dev.components import REAL_NODE, Plan
from pequod.dev.keeper import Component
from pequod.dev.layout import Layout
from pequod.dev.node import init, settings
from pequod.dev.node.cgroups import make_cgroups
from pequod.dev.node.configuration import (
    PAUSE_IMAGE,
    dns_address,
    write_configuration,
)
from pequod.dev.node.images import write_image
from pequod.dev.node.network import Slot, connect, mark
from pequod.dev.programs import Programs

_INSIDE_PROGRAMS = ("kubelet", "kube-proxy", "kube-controller-manager")
_MANIFEST = Path(__file__).parents[1] / "manifests/real.yaml"
_POLL = 0.05


class RealNode:
    """One node with real pods."""

    name = REAL_NODE

    def __init__(self, plan: Plan, programs: Programs, *, slot: Slot) -> None:
        self._plan = plan
        self._programs = programs
        self._slot = slot
        self._inside = replace(plan, layout=Layout(init.INSIDE))
        self._pid = 0

    def foundation(self) -> Component:
        """The first process of the node, in fresh namespaces."""
        write_configuration(self._plan, self._slot, inside=self._inside.layout)
        files = {self._programs.commands[name][0] for name in _INSIDE_PROGRAMS}
        command = (
            "unshare",
            *("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *("--", sys.executable, "-I", "-S", init.__file__),
            *(str(self._plan.layout.root), *sorted(files)),
        )
        return Component(name="node", command=command, restarted=False)

    async def prepare(self, foundation: int | None) -> None:
        """Wait for the node's file systems, and connect it."""
        assert foundation is not None, "a real node has a foundation"
        ready = self._plan.layout.node / "ready"
        while not ready.exists():
            await asyncio.sleep(_POLL)
        self._pid = await asyncio.to_thread(first_process, foundation)
        await connect(self._slot, self._pid)
        settings.forward_packets()
        await asyncio.to_thread(make_cgroups, mark(self._slot.owner))

    def components(self) -> Sequence[Component]:
        """What makes the node a node."""
        inside = self._inside.layout
        containerd = ("containerd", f"--config={inside.node}/containerd.toml")
        kubelet = (
            f"--config={inside.node}/kubelet.yaml",
            f"--kubeconfig={inside.kubeconfig_of('kubelet')}",
            f"--hostname-override={REAL_NODE}",
            f"--node-ip={self._slot.node}",
            f"--cert-dir={inside.node}/kubelet-pki",
        )
        proxy = (f"--config={inside.node}/kube-proxy.yaml",)
        return (
            self._in_namespaces("containerd", containerd),
            self._in_namespaces("kubelet", self._shown("kubelet", *kubelet)),
            self._in_namespaces("kube-proxy", self._shown("kube-proxy", *proxy)),
            self._add_on("coredns", "-conf", str(self._plan.layout.node / "Corefile"), port=53),
            self._add_on(
                "registry",
                "serve",
                str(self._plan.layout.node / "registry.yaml"),
                port=self._plan.ports.registry,
            ),
        )

    async def complete(self) -> None:
        """Give containerd the image that every pod starts with."""
        archive = self._plan.layout.node / "pause.tar"
        pause = Path(self._programs.commands["pause"][0])
        await asyncio.to_thread(write_image, archive, name=PAUSE_IMAGE, program=pause)
        shown = str(self._inside.layout.node / "pause.tar")
        while (await attempt(*self._enter(), "ctr", "version")).code != 0:
            await asyncio.sleep(_POLL)
        load = ("ctr", "--namespace=k8s.io", "images", "import", shown)
        await run(*self._enter(), *load, next_step="Look into containerd's log (--keep-logs).")

    def manifests(self) -> Sequence[dict[str, Any]]:
        """The class of the node's volumes, and its DNS."""
        text = _MANIFEST.read_text()
        text = text.replace("DNS_SERVICE", dns_address(self._plan))
        text = text.replace("DNS_SERVER", self._plan.network.host)
        return [*yaml.load_all(text, yaml.CSafeLoader)]

    def inside(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """In the node's file systems, but in our network."""
        program, *arguments = command
        shown = str(init.PROGRAMS / Path(program).name)
        return ("nsenter", f"--target={self._pid}", "--mount", "--", shown, *arguments)

    def seen_inside(self) -> Plan:
        """Everything is below one directory there."""
        return self._inside

    def _enter(self) -> tuple[str, ...]:
        # Entering a pid namespace needs a second process, which must not outlive the first.
        return (*enter(self._pid), "setpriv", "--pdeathsig=KILL", "--")

    def _in_namespaces(self, name: str, command: tuple[str, ...]) -> Component:
        return Component(name=name, command=(*self._enter(), *command))

    def _shown(self, name: str, *arguments: str) -> tuple[str, ...]:
        program, *first = self._programs.commands[name]
        return (str(init.PROGRAMS / Path(program).name), *first, *arguments)

    def _add_on(self, name: str, *arguments: str, port: int) -> Component:
        quiet = ("env", "OTEL_TRACES_EXPORTER=none")
        command = (*quiet, *self._programs.command(name, *arguments))
        return Component(name=name, command=command, listens=((self._plan.network.host, port),))


def first_process(foundation: int) -> int:
    """The first process of the node's namespaces: the only child of its foundation."""
    (child,) = Path(f"/proc/{foundation}/task/{foundation}/children").read_text().split()
    return int(child)


def enter(pid: int) -> tuple[str, ...]:
    """The beginning of a command that runs inside the node."""
    return ("nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--")
