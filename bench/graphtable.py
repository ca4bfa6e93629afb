"""The table of `bench.graph`: figures, what we want them to be, and whether they are."""

from bench.graphmeter import Meter, Used
from bench.idle import MEMORY, Requests
from bench.plane import MIB


class Table:
    """The figures of one number of graphs."""

    def __init__(self, graphs: int, nodes: int) -> None:
        self._graphs = graphs
        self._objects = graphs * nodes
        self.lines = [
            "",
            f"{graphs} graphs x {nodes} nodes = {self._objects} objects",
            f"  {'':40} {'':>18}  {'goal':12} reached",
        ]

    def head(self, title: str) -> None:
        """Begin with another phase."""
        self.lines.append(title)

    def row(self, name: str, value: str) -> None:
        """A figure."""
        self.lines.append(f"  {name:40} {value:>18}")

    def goal(self, name: str, value: str, goal: str, *, reached: bool) -> None:
        """A figure that we want something of."""
        word = "yes" if reached else "no"
        self.lines.append(f"  {name:40} {value:>18}  {goal:12} {word}")

    def rates(self, seconds: float, floor: float, same: float, share: float) -> None:
        """How fast all objects came to be, or went; beside the loader's objects per second."""
        rate = self._objects / seconds
        self.row("time", f"{seconds:.2f} s")
        self.row("objects", f"{rate:,.0f}/s")
        reached = rate >= share * floor
        self.goal("of the floor", f"{rate / floor:.0%}", f">= {share:.0%}", reached=reached)
        self.row("  the same objects by the loader", f"{same / floor:.0%}")
        self.row("of the same objects by the loader", f"{rate / same:.0%}")

    def per_object(self, used: Used, doing: str, limit: float | None = None) -> None:
        """Requests for each object: the operator's own, with the client's, and all there were."""
        own = used.asked / self._objects
        name = "requests of the operator per object"
        if limit is None:
            self.row(name, f"{own:.2f}")
        else:
            self.goal(name, f"{own:.2f}", f"<= {limit}", reached=own <= limit)
        both = (used.asked + self._graphs) / self._objects
        self.row(f"  with the {doing} of the graphs", f"{both:.2f}")
        everybody = used.served.total() / self._objects
        self.row("  of everybody, controllers included", f"{everybody:.2f}")

    def cpu(self, used: Used) -> None:
        """Processor time, all in all and for 1000 objects."""
        for name, seconds in (
            ("operator", used.operator),
            ("API server and etcd", used.server),
            ("controllers of Kubernetes", used.controllers),
            ("client and watch of this program", used.client),
        ):
            self.row(f"CPU, {name}", f"{seconds:.2f} s")
            self.row("  for 1000 objects", f"{seconds / self._objects * 1000:.2f} s")

    def memory(self, meter: Meter) -> None:
        """What the operator takes now, and what was the most."""
        resident = meter.resident()
        value = f"{resident / MIB:.1f} MiB"
        self.goal("RSS of the operator", value, "< 100 MiB", reached=resident < MEMORY)
        self.row("  its peak in this phase", f"{meter.peak() / MIB:.1f} MiB")

    def requests(self, requests: Requests, per: float, what: str) -> None:
        """Every request of the operator, by verb, resource and code."""
        for (verb, resource, code), number in sorted(requests.items()):
            name = f"{verb:7} {resource or '-'}"
            self.lines.append(f"    {name:52} {code:>4} {number:6} {number / per:8.3f} per {what}")
