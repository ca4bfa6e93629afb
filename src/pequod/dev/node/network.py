"""The link between this machine and a real node, which lives in a network namespace of its own.

Everything is numbered by a slot: the network device of the slot is the claim on it, and goes away
with the node.
"""

from dataclasses import dataclass

from pequod.dev.components import Network
from pequod.dev.failure import DevError
from pequod.dev.node.commands import attempt, attempt_now, run

SLOTS = 200


@dataclass(frozen=True)
class Slot:
    """The number of a real node on this machine, and the addresses that follow from it."""

    number: int

    @property
    def outer(self) -> str:
        """Our end of the link."""
        return f"pequod{self.number}"

    @property
    def inner(self) -> str:
        """The node's end of the link, before it is moved there."""
        return f"pequod{self.number}n"

    @property
    def node(self) -> str:
        """The node's address."""
        return f"10.231.{self.number}.2"

    @property
    def link(self) -> str:
        """The network between us and the node."""
        return f"10.231.{self.number}.0/24"

    @property
    def cgroup(self) -> str:
        """The control group of the node's pods."""
        return f"pequod{self.number}"

    @property
    def network(self) -> Network:
        """The addresses of the control plane."""
        return Network(
            host=f"10.231.{self.number}.1",
            pods=f"10.232.{self.number}.0/24",
            services=f"10.233.{self.number}.0/24",
            node=self.node,
        )


async def claim_slot() -> Slot:
    """Claim the first free slot by making its network device, and give it our address."""
    for number in range(SLOTS):
        slot = Slot(number)
        link = ("link", "add", slot.outer, "type", "veth", "peer", "name", slot.inner)
        code, output = await attempt("ip", *link)
        if code == 0:
            await run("ip", "address", "add", f"{slot.network.host}/24", "dev", slot.outer)
            await run("ip", "link", "set", slot.outer, "up")
            return slot
        if "File exists" not in output:
            raise DevError(
                f"a network device cannot be made: {output.strip()}",
                next_step="A real node needs a kernel with veth devices; use --node simulated.",
            )
    raise DevError(
        f"{SLOTS} real nodes run on this machine",
        next_step="End some with `pequod dev down`.",
    )


async def connect(slot: Slot, pid: int) -> None:
    """Give the node of a process its end of the link, and a way out through this machine."""
    await run("ip", "link", "set", slot.inner, "netns", str(pid), "name", "eth0")
    inside = ("nsenter", f"--target={pid}", "--net", "ip")
    await run(*inside, "link", "set", "lo", "up")
    await run(*inside, "address", "add", f"{slot.node}/24", "dev", "eth0")
    await run(*inside, "link", "set", "eth0", "up")
    await run(*inside, "route", "add", "default", "via", slot.network.host)
    for reachable in (slot.network.pods, slot.network.services):
        await run("ip", "route", "add", reachable, "via", slot.node, "dev", slot.outer)
    for rule in _rules(slot):
        await run("iptables", "--wait", *rule("--append"))


@dataclass(frozen=True)
class _Rule:
    """One rule of this machine's packet filter."""

    table: str
    chain: str
    specification: tuple[str, ...]

    def __call__(self, action: str) -> tuple[str, ...]:
        return ("--table", self.table, action, self.chain, *self.specification)


def _rules(slot: Slot) -> list[_Rule]:
    comment = ("--match", "comment", "--comment", slot.outer)
    masquerade = ("--source", slot.link, "!", "--out-interface", slot.outer)
    return [
        _Rule("nat", "POSTROUTING", (*masquerade, *comment, "--jump", "MASQUERADE")),
        _Rule("filter", "FORWARD", ("--in-interface", slot.outer, *comment, "--jump", "ACCEPT")),
        _Rule("filter", "FORWARD", ("--out-interface", slot.outer, *comment, "--jump", "ACCEPT")),
    ]


def disconnect(slot: Slot) -> None:
    """Remove the link and everything that refers to it; whatever is gone already is fine."""
    for rule in _rules(slot):
        attempt_now("iptables", "--wait", *rule("--delete"))
    attempt_now("ip", "link", "delete", slot.outer)
