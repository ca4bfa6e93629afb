"""The link between this machine and a real node, which lives in a network namespace of its own.

A node has a slot, a small number from which all its addresses follow, and an owner, a random word
that marks whatever belongs to it. The slot's network device is the claim on it. What is removed
afterwards is found by its owner alone, so that nobody can remove what is another's.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

from pequod.dev.commands import attempt, attempt_now, run
from pequod.dev.components import Network
from pequod.dev.failure import DevError

SLOTS = 200
_NEXT_STEP = "Is this machine allowed to make network devices? Otherwise use --node simulated."


@dataclass(frozen=True)
class Slot:
    """The number of a real node on this machine, the addresses that follow, and its owner."""

    number: int
    owner: str

    @property
    def outer(self) -> str:
        """Our end of the link."""
        return f"pequod{self.number}"

    @property
    def node(self) -> str:
        """The node's address."""
        return f"10.231.{self.number}.2"

    @property
    def link(self) -> str:
        """The network between us and the node."""
        return f"10.231.{self.number}.0/24"

    @property
    def network(self) -> Network:
        """The addresses of the control plane."""
        return Network(
            host=f"10.231.{self.number}.1",
            pods=f"10.232.{self.number}.0/24",
            services=f"10.233.{self.number}.0/24",
            node=self.node,
        )


def _inner(owner: str) -> str:
    """The node's end of the link, until it is moved there."""
    return f"pq{owner}"


def mark(owner: str) -> str:
    """What marks rules and control groups as the owner's."""
    return f"pequod-{owner}"


async def claim_slot(owner: str) -> Slot:
    """Claim the first free slot by making its network device, and give it our address."""
    for number in range(SLOTS):
        slot = Slot(number, owner)
        link = ("link", "add", slot.outer, "type", "veth", "peer", "name", _inner(owner))
        result = await attempt("ip", *link)
        if result.code == 0:
            await _ip("link", "set", slot.outer, "alias", mark(owner))
            await _ip("address", "add", f"{slot.network.host}/24", "dev", slot.outer)
            await _ip("link", "set", slot.outer, "up")
            return slot
        if "File exists" not in result.errors:
            raise DevError(
                f"a network device cannot be made: {result.errors.strip()}", next_step=_NEXT_STEP
            )
    raise DevError(
        f"{SLOTS} real nodes run on this machine", next_step="End some with `pequod dev down`."
    )


async def connect(slot: Slot, pid: int) -> None:
    """Give the node of a process its end of the link, and a way out through this machine."""
    inner = _inner(slot.owner)
    await _ip("link", "set", inner, "netns", str(pid), "name", "eth0")
    inside = ("nsenter", f"--target={pid}", "--net", "ip")
    await run(*inside, "link", "set", "lo", "up", next_step=_NEXT_STEP)
    await run(*inside, "address", "add", f"{slot.node}/24", "dev", "eth0", next_step=_NEXT_STEP)
    await run(*inside, "link", "set", "eth0", "up", next_step=_NEXT_STEP)
    gateway = ("default", "via", slot.network.host)
    await run(*inside, "route", "add", *gateway, next_step=_NEXT_STEP)
    for reachable in (slot.network.pods, slot.network.services):
        await _ip("route", "add", reachable, "via", slot.node, "dev", slot.outer)
    for table, chain, rule in _rules(slot):
        where = ("--table", table, "--insert", chain)
        await run("iptables", "--wait", *where, *rule, next_step=_NEXT_STEP)


def _rules(slot: Slot) -> list[tuple[str, str, tuple[str, ...]]]:
    """Table, chain and rule: a way out for pods, past whatever else filters packets here."""
    comment = ("--match", "comment", "--comment", mark(slot.owner))
    masquerade = ("--source", slot.link, "!", "--out-interface", slot.outer)
    return [
        ("nat", "POSTROUTING", (*masquerade, *comment, "--jump", "MASQUERADE")),
        ("filter", "FORWARD", ("--in-interface", slot.outer, *comment, "--jump", "ACCEPT")),
        ("filter", "FORWARD", ("--out-interface", slot.outer, *comment, "--jump", "ACCEPT")),
    ]


def disconnect(owner: str) -> None:
    """Remove what is the owner's, without waiting for the kernel to end its namespace."""
    for device in (_inner(owner), *_marked_devices(owner)):
        attempt_now("ip", "link", "delete", device)
    for table, chain in (("nat", "POSTROUTING"), ("filter", "FORWARD")):
        listed = attempt_now("iptables", "--wait", "--table", table, "--list-rules", chain)
        for line in listed.output.splitlines():
            if mark(owner) in line:
                _, *rule = shlex.split(line)
                attempt_now("iptables", "--wait", "--table", table, "--delete", *rule)


def _marked_devices(owner: str) -> list[str]:
    aliases = Path("/sys/class/net").glob("pequod*/ifalias")
    return [path.parent.name for path in aliases if path.read_text().strip() == mark(owner)]


async def _ip(*arguments: str) -> None:
    await run("ip", *arguments, next_step=_NEXT_STEP)
