"""A crash between any two writes loses nothing, and what goes, goes once and in order."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from pequod.api.graph import InventoryEntry, Node
from pequod.graph.inventory import Intent, Inventory
from pequod.graph.model import Plan, Ref, checked
from pequod.graph.prune import Order

NAMES = "abcdefgh"


class CrashError(Exception):
    """The process ends here."""


@dataclass
class Cluster:
    """What survives a crash: objects, and the inventory that was stored last."""

    objects: dict[str, str] = field(default_factory=dict)
    stored: tuple[InventoryEntry, ...] = ()
    made: int = 0
    fuel: int = 0
    """Writes until the next crash."""

    def write(self, change: Callable[[], None]) -> None:
        if self.fuel == 0:
            raise CrashError
        self.fuel -= 1
        change()
        known = {entry.id for entry in self.stored}
        assert self.objects.keys() <= known, "an object that nobody would ever take away"

    def store(self, inventory: Inventory) -> None:
        self.stored = inventory.entries()

    def remove(self, id_: str) -> None:
        self.objects.pop(id_, None)

    def create(self, id_: str) -> None:
        if id_ not in self.objects:
            self.made += 1
            self.objects[id_] = f"uid-{self.made}"


def ref(name: str) -> Ref:
    return Ref("", "ConfigMap", "shop", name)


def node(name: str, depends_on: tuple[str, ...] = ()) -> Node:
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return Node(id=f"n-{name}", object=object_, depends_on=tuple(f"n-{one}" for one in depends_on))


def planned(choices: list[tuple[str, int]]) -> Plan:
    names = [name for name, _ in choices]
    return checked(
        [
            node(name, tuple(other for i, other in enumerate(names[:index]) if choice >> i & 1))
            for index, (name, choice) in enumerate(choices)
        ]
    )


PLANS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 255)),
    max_size=len(NAMES),
    unique_by=lambda pair: pair[0],
).map(planned)


def intents(plan: Plan) -> list[Intent]:
    return [
        Intent(ref(one.object["metadata"]["name"]), "v1", one.id, plan.levels[one.id])
        for one in plan
    ]


def run(cluster: Cluster, plan: Plan) -> None:
    """One pass from what is stored: intend, apply, prune, and store each time it matters."""
    inventory = Inventory(cluster.stored)
    wanted = intents(plan)
    if inventory.widen(wanted):
        cluster.write(lambda: cluster.store(inventory))
    for intent in wanted:
        id_ = intent.ref.id
        cluster.write(lambda id_=id_: cluster.create(id_))  # type: ignore[misc]
        inventory.learn(id_, cluster.objects[id_])
    stale = inventory.stale(intent.ref.id for intent in wanted)
    order, remaining = Order(stale, None), {entry.id for entry in stale}
    while remaining:
        for id_ in order.next(remaining):
            cluster.write(lambda id_=id_: cluster.remove(id_))  # type: ignore[misc]
            inventory.drop(id_)
            remaining.discard(id_)
    cluster.write(lambda: cluster.store(inventory))


@given(st.lists(st.tuples(PLANS, st.integers(0, 20)), min_size=1, max_size=5), PLANS)
@settings(max_examples=40, deadline=None)
def test_a_crash_between_any_two_writes_loses_nothing_and_orphans_nothing(
    crashes: list[tuple[Plan, int]], last: Plan
) -> None:
    cluster = Cluster()
    for plan, fuel in crashes:
        cluster.fuel = fuel
        try:
            run(cluster, plan)
        except CrashError:
            continue
    cluster.fuel = 1000
    run(cluster, last)
    wanted = {intent.ref.id for intent in intents(last)}
    assert cluster.objects.keys() == wanted
    assert {entry.id: entry.uid for entry in cluster.stored} == cluster.objects
    cluster.fuel = 1000
    before = cluster.stored
    run(cluster, last)
    assert cluster.stored == before


def taken_away(order: Order, ids: set[str], slow: Callable[[], bool]) -> list[str]:
    """The objects in the order in which they went; some take longer than others."""
    gone: list[str] = []
    remaining = set(ids)
    while remaining:
        may_go = order.next(remaining)
        assert may_go, "nothing may go, and something is left"
        assert set(may_go) <= remaining
        going = [id_ for id_ in sorted(may_go) if not slow()] or [min(may_go)]
        gone += going
        remaining -= set(going)
    return gone


def entries(plan: Plan) -> list[InventoryEntry]:
    inventory = Inventory()
    inventory.widen(intents(plan))
    return list(inventory)


@given(PLANS, st.booleans(), st.data())
@settings(max_examples=40, deadline=None)
def test_everything_goes_once_and_never_before_what_depends_on_it(
    plan: Plan,
    known: bool,  # noqa: FBT001 -- with the plan, or with levels only
    data: st.DataObject,
) -> None:
    doomed = entries(plan)
    order = Order(doomed, plan if known else None)
    gone = taken_away(order, {one.id for one in doomed}, lambda: data.draw(st.booleans()))
    assert sorted(gone) == sorted(one.id for one in doomed)
    place = {id_: index for index, id_ in enumerate(gone)}
    by_node = {one.node: one.id for one in doomed}
    for one in plan:
        for other in one.depends_on:
            assert place[by_node[one.id]] < place[by_node[other]]


@given(PLANS, PLANS, st.data())
@settings(max_examples=40, deadline=None)
def test_what_no_plan_knows_any_more_never_keeps_the_rest_from_going(
    before: Plan, after: Plan, data: st.DataObject
) -> None:
    inventory = Inventory(entries(before))
    inventory.widen(intents(after))
    ids = {one.id for one in inventory}
    gone = taken_away(Order(inventory.entries(), after), set(ids), lambda: data.draw(st.booleans()))
    assert sorted(gone) == sorted(ids)
    place = {id_: index for index, id_ in enumerate(gone)}
    by_node = {one.node: one.id for one in inventory}
    for one in after:
        for other in one.depends_on:
            assert place[by_node[one.id]] < place[by_node[other]]


@given(PLANS, PLANS)
@settings(max_examples=40, deadline=None)
def test_what_is_stale_and_what_is_wanted_are_everything(before: Plan, after: Plan) -> None:
    inventory = Inventory(entries(before))
    inventory.widen(intents(after))
    wanted = {intent.ref.id for intent in intents(after)}
    stale = {one.id for one in inventory.stale(wanted)}
    assert stale.isdisjoint(wanted)
    assert stale | wanted == {one.id for one in inventory}
    assert not inventory.widen(intents(after))
