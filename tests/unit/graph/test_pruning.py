"""What a change may take away without anybody's agreement, and in which order things go."""

import pytest

from pequod.api.graph import InventoryEntry, Node
from pequod.graph.model import Plan, Ref, checked
from pequod.graph.prune import Order, braked, listed


def entry(
    name: str,
    *,
    kind: str = "ConfigMap",
    group: str = "",
    uid: str | None = "u",
    level: int | None = None,
    node: str | None = None,
) -> InventoryEntry:
    id_ = Ref(group, kind, "shop", name).id
    return InventoryEntry(id=id_, version="v1", uid=uid, level=level, node=node)


def entries(count: int) -> list[InventoryEntry]:
    return [entry(f"n{i}") for i in range(count)]


def plan(**edges: tuple[str, ...]) -> Plan:
    return checked(
        [
            Node(
                id=id_,
                object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": id_}},
                depends_on=others,
            )
            for id_, others in edges.items()
        ]
    )


def waves(order: Order, ids: set[str]) -> list[list[str]]:
    """The names of what goes together, one after the other."""
    found, remaining = [], set(ids)
    while remaining:
        going = order.next(remaining)
        assert going, "nothing may go, and something is left"
        found.append(sorted(Ref.of(id_).name for id_ in going))
        remaining -= set(going)
    return found


@pytest.mark.parametrize(
    ("stale", "before", "stops"),
    [
        (0, 0, False),
        (1, 1, False),
        (1, 10, False),
        (2, 2, True),
        (2, 3, True),
        (2, 4, False),
        (5, 10, False),
        (6, 11, True),
    ],
)
def test_more_than_half_needs_an_agreement_and_a_single_object_does_not(
    stale: int,
    before: int,
    stops: bool,  # noqa: FBT001 -- a table
) -> None:
    assert bool(braked(entries(stale), before, emptied=False)) is stops


def test_the_brake_says_what_would_be_deleted() -> None:
    assert braked(entries(7), 8, emptied=False) == (
        "would delete 7 of 8 objects: ConfigMap/shop/n0, ConfigMap/shop/n1, ConfigMap/shop/n2, "
        "ConfigMap/shop/n3, ConfigMap/shop/n4 and 2 more"
    )


def test_who_empties_a_graph_on_purpose_has_agreed() -> None:
    assert braked(entries(9), 9, emptied=True) == ""


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("", "Namespace"),
        ("", "PersistentVolumeClaim"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ],
)
@pytest.mark.parametrize("emptied", [True, False])
def test_what_takes_more_with_it_always_needs_an_agreement(
    group: str,
    kind: str,
    emptied: bool,  # noqa: FBT001 -- a table
) -> None:
    precious = entry("data", group=group, kind=kind)
    found = braked([entry("a"), precious], 50, emptied=emptied)
    assert found == f"would delete {kind}/shop/data, and whatever is in it"


def test_a_precious_kind_is_known_by_its_group() -> None:
    assert braked([entry("a", group="example.org", kind="Namespace")], 9, emptied=False) == ""


def test_what_was_never_made_is_not_deleted() -> None:
    intended = [entry(f"n{i}", uid=None) for i in range(9)]
    assert braked([*intended, entry("one")], 1, emptied=False) == ""


def test_what_is_precious_and_may_have_been_made_needs_an_agreement() -> None:
    """The process may have ended before it was noted that it was made."""
    claim = entry("data", kind="PersistentVolumeClaim", uid=None)
    assert "PersistentVolumeClaim/shop/data" in braked([claim], 9, emptied=True)


def test_a_few_objects_are_named_and_the_rest_is_counted() -> None:
    refs = [Ref.of(one.id) for one in entries(3)]
    assert listed(refs) == "ConfigMap/shop/n0, ConfigMap/shop/n1, ConfigMap/shop/n2"
    assert listed(refs, 1) == "ConfigMap/shop/n0 and 2 more"
    assert listed([]) == ""


def test_case_59_objects_go_before_those_that_they_depend_on() -> None:
    diamond = plan(top=("left", "right"), left=("base",), right=("base",), base=(), alone=())
    known = [entry(id_, node=id_, level=diamond.levels[id_] or None) for id_ in diamond.order]
    ids = {one.id for one in known}
    assert waves(Order(known, diamond), ids) == [["alone", "top"], ["left", "right"], ["base"]]
    assert waves(Order(known, None), ids) == [["top"], ["left", "right"], ["alone", "base"]]


def test_without_a_plan_whatever_is_deeper_goes_first() -> None:
    known = [entry("a"), entry("b", level=2), entry("c", level=1), entry("d", level=2)]
    found = waves(Order(known, None), {one.id for one in known})
    assert found == [["b", "d"], ["c"], ["a"]]


def test_what_a_node_was_before_goes_before_what_it_depends_on() -> None:
    """A node became another object, and the one that it was is still there."""
    order = plan(app=("base",), base=())
    before = entry("app-before", node="app", level=1)
    known = [before, entry("app", node="app", level=1), entry("base", node="base")]
    ids = {one.id for one in known}
    assert waves(Order(known, order), ids) == [["app", "app-before"], ["base"]]
    assert waves(Order(known[::-1], order), ids) == [["app", "app-before"], ["base"]]


def test_nothing_goes_when_nothing_is_left() -> None:
    assert Order([], None).next(set()) == []
    assert Order(entries(2), plan()).next(set()) == []
