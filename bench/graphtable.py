"""The table of `bench.graph`: figures, what we want them to be, and whether they are."""

from dataclasses import dataclass

from bench.graphmeter import Meter, Used
from bench.idle import MEMORY, Requests
from bench.plane import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What making all objects took, or ending them."""

    seconds: float
    rest: float
    """Seconds until nobody had anything left to do, controllers of Kubernetes included."""
    server: float
    """Processor time of the API server and etcd until then."""


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

    def floor(self, doing: str, took: Took) -> None:
        """What the loader took."""
        self.row(f"{doing}", f"{took.seconds:.2f} s")
        self.row("  until everybody was at rest", f"{took.rest:.2f} s")
        self.row("  objects until then", f"{self._objects / took.rest:,.0f}/s")
        cpu = took.server / self._objects * 1000
        self.row("  API server and etcd, for 1000", f"{cpu:.2f} s")

    def beside(self, took: Took, floor: Took, share: float) -> None:
        """How fast all objects came to be, or went, beside the loader's rate."""
        self.row("time", f"{took.seconds:.2f} s")
        self.row("  until everybody was at rest", f"{took.rest:.2f} s")
        self.row("  objects until then", f"{self._objects / took.rest:,.0f}/s")
        found = floor.rest / took.rest
        self.goal("  of the floor", f"{found:.0%}", f">= {share:.0%}", reached=found >= share)
        self.row("  of the floor, by the time alone", f"{floor.seconds / took.seconds:.0%}")
        self.row("  of the floor, CPU of the server", f"{floor.server / took.server:.0%}")

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
