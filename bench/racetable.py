"""The table of `bench.race_kro`: both contenders side by side, and what we want of the ratio."""

import statistics
from collections.abc import Callable, Mapping, Sequence

from bench.graphdrift import percentile
from bench.plane import MIB
from bench.raceleg import Figures, Phase

FASTER = 5.0
"""How many times faster we want to make and to end everything."""
FEWER = 7.0
"""How many times fewer requests we want to make for it."""
PER_OBJECT = 2.0

Rounds = Sequence[Figures]


class Table:
    """Kro, Pequod, and how many times more the first one takes; or one of them alone."""

    def __init__(self, figures: Mapping[str, Rounds], *, instances: int, nodes: int) -> None:
        self._sides = tuple(figures.values())
        self._instances = instances
        self._objects = instances * nodes
        names = "".join(f"{name:>24}" for name in figures)
        self.lines = [
            "",
            f"{instances} instances x {nodes} nodes = {self._objects} objects, "
            f"{len(self._sides[0])} rounds each: the median, and the least to the most",
            f"  {'':44}{names}{'ratio':>8}  goal",
        ]
        self._phase("created at once, until all are Ready", lambda one: one.created, goal=True)
        self._phase("deleted, until everything is gone", lambda one: one.deleted, goal=False)
        self._drift()
        self.lines.append("all the time")
        self._row("peak RSS with children, MiB", lambda one: one.peak / MIB)

    def _phase(self, title: str, phase: Callable[[Figures], Phase], *, goal: bool) -> None:
        self.lines.append(title)
        objects, thousands = self._objects, self._objects / 1000

        def used(name: str) -> Callable[[Figures], float]:
            return lambda one: float(getattr(phase(one).used, name))

        def asked(one: Figures) -> float:
            """With the client's one request for each instance."""
            return (phase(one).used.own + self._instances) / objects

        self._row("time, s", lambda one: phase(one).seconds, at_least=FASTER)
        self._row(
            "requests per object, contender and client",
            asked,
            at_least=FEWER if goal else None,
            at_most=PER_OBJECT if goal else None,
        )
        self._row("  of the contender alone", lambda one: used("own")(one) / objects)
        self._row(
            "  of everybody, controllers included",
            lambda one: phase(one).used.served.total() / objects,
        )
        for name, title_ in (
            ("contender", "contender"),
            ("server", "API server and etcd"),
            ("controllers", "controllers of Kubernetes"),
        ):
            self._row(f"CPU, {title_}, s for 1000", _divided(used(name), thousands))
        self._row("cores that strangers used meanwhile", lambda one: phase(one).others)

    def _drift(self) -> None:
        self.lines.append("changed by somebody else, one after the other, until undone")
        for share in (0.5, 0.99):
            self._row(f"p{share * 100:.0f}, ms", _late(share))
        self._row("never undone", lambda one: one.repairs.never)

    def _row(
        self,
        name: str,
        figure: Callable[[Figures], float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        both = [[figure(one) for one in rounds] for rounds in self._sides]
        shown = "".join(f"{_range(values):>24}" for values in both)
        if len(both) == 1:
            self.lines.append(f"  {name:44}{shown}")
            return
        kro, pequod = (statistics.median(values) for values in both)
        ratio = kro / pequod if pequod else 0.0
        goals = []
        if at_least is not None:
            goals.append(f">= {at_least:g}x: {_word(ratio >= at_least)}")
        if at_most is not None:
            goals.append(f"<= {at_most:g}: {_word(pequod <= at_most)}")
        times = f"{ratio:.1f}x" if pequod else "-"
        self.lines.append(f"  {name:44}{shown}{times:>8}  {', '.join(goals)}".rstrip())


def _divided(figure: Callable[[Figures], float], by: float) -> Callable[[Figures], float]:
    return lambda one: figure(one) / by


def _late(share: float) -> Callable[[Figures], float]:
    def milliseconds(one: Figures) -> float:
        return percentile(one.repairs.times, share) * 1e3 if one.repairs.times else float("nan")

    return milliseconds


def _range(values: Sequence[float]) -> str:
    middle = f"{statistics.median(values):.2f}"
    return f"{middle} ({min(values):.2f}–{max(values):.2f})" if len(values) > 1 else middle


def _word(reached: bool) -> str:  # noqa: FBT001 -- a word for a boolean
    return "yes" if reached else "no"


def shown(figures: Mapping[str, Rounds], *, instances: int, nodes: int) -> str:
    """The table."""
    return "\n".join(Table(figures, instances=instances, nodes=nodes).lines)


def requests(figures: Mapping[str, Rounds], *, objects: int) -> str:
    """What everybody has asked for in the last round of each contender."""
    lines = []
    for name, rounds in figures.items():
        phases = {"creation": rounds[-1].created, "deletion": rounds[-1].deleted}
        for title, phase in phases.items():
            lines += ["", f"{name}, {title}: requests of everybody in the last round, per object"]
            lines += [
                f"  {verb:20} {resource:32} {count:6} {count / objects:8.3f}"
                for (verb, resource), count in sorted(phase.used.served.items())
                if count > 0
            ]
    return "\n".join(lines)
