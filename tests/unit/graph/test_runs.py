"""What is remembered of a graph between passes, and what of it comes back after a restart."""

from datetime import UTC, datetime

import msgspec
import pytest

from pequod.api import reasons
from pequod.api.graph import InventoryEntry, Node, NodeDigests, NodeStatus
from pequod.graph.inventory import Intent, Inventory
from pequod.graph.model import InvalidGraphError, Ref
from pequod.graph.record import Problem, Record
from pequod.graph.run import Run, resumed

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ONE = Ref("", "ConfigMap", "shop", "one").id
TWO = Ref("", "ConfigMap", "shop", "two").id


def node(id_: str, *depends_on: str) -> Node:
    object_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": id_}}
    return Node(id=id_, object=object_, depends_on=depends_on)


def run_of(*records: str) -> Run:
    return Run(
        graph="g",
        namespace="shop",
        inventory=Inventory(),
        records={id_: Record(ref_id=ONE, desired=id_) for id_ in records},
    )


def again(*entries: InventoryEntry, **statuses: NodeStatus) -> Run:
    return resumed("g", "shop", entries, statuses, clock=0.0, now=NOW)


def test_a_plan_is_made_once_for_a_generation_and_keeps_no_objects() -> None:
    run = run_of()
    assert run.generation == -1
    assert run.kib == 0.0
    first = run.plan(1, (node("app", "base"), node("base")))
    assert [one.id for one in first] == ["base", "app"]
    assert run.generation == 1
    assert run.kib > 0.0
    later = run.plan(1, (node("base"), node("app", "base")))
    assert later.order == first.order
    assert [one.id for one in later] == ["base", "app"]


def test_a_new_generation_keeps_the_records_of_nodes_that_stay() -> None:
    run = run_of("stays", "goes")
    run.records["stays"].retry_at = 99.0
    run.plan(1, (node("stays"), node("comes")))
    assert run.records.keys() == {"stays", "comes"}
    assert run.records["stays"].desired == "stays"
    assert run.records["stays"].retry_at == 0.0
    assert run.records["comes"].desired == ""


def test_a_new_generation_gives_what_failed_a_new_start() -> None:
    """Who has mended something does not wait for what came before."""
    run = run_of("stays")
    run.records["stays"].failures, run.records["stays"].retry_at = 9, 300.0
    run.plan(1, (node("stays"),))
    assert (run.records["stays"].failures, run.records["stays"].retry_at) == (0, 0.0)


def test_how_much_there_was_is_not_counted_again_while_something_is_left_over() -> None:
    run = run_of()
    run.inventory = Inventory(InventoryEntry(id=id_, version="v1", uid="u") for id_ in (ONE, TWO))
    run.plan(1, (node("one"), node("two")))
    assert run.before == 2
    run.left_over([*run.inventory][:1])
    run.inventory.widen([Intent(Ref("", "ConfigMap", "shop", "three"), "v1", "three", 0)])
    run.inventory.learn(Ref("", "ConfigMap", "shop", "three").id, "u")
    run.plan(2, (node("one"), node("three")))
    assert run.before == 2, "what was added does not count"
    run.inventory.drop(TWO)
    run.inventory.drop(ONE)
    run.plan(3, (node("three"),))
    assert run.before == 1, "what is gone does not count either"
    run.left_over(())
    run.plan(4, (node("three"),))
    assert run.before == 1


def test_what_is_wanted_again_is_not_on_its_way_out() -> None:
    run = run_of()
    run.going |= {ONE, TWO}
    run.stale_since |= {ONE: 1.0, TWO: 1.0}
    run.left_over([InventoryEntry(id=TWO, version="v1")])
    assert (run.going, run.stale_since) == ({TWO}, {TWO: 1.0})


def test_statuses_of_large_graphs_are_written_less_often() -> None:
    """At most one in 250 ms, or 10 ms for each KiB."""
    run = run_of()
    run.plan(1, (node("one"),))
    assert run.pace == 0.25
    content = {"data": {"a": "x" * 100 * 1024}}
    run.plan(2, (msgspec.structs.replace(node("one"), object=node("one").object | content),))
    assert 1.0 < run.pace < 1.01


def test_a_graph_that_is_wrong_leaves_everything_as_it_was() -> None:
    run = run_of("a")
    run.plan(1, (node("a"),))
    with pytest.raises(InvalidGraphError):
        run.plan(2, (node("a", "nowhere"),))
    assert run.generation == 1
    assert run.records["a"].desired == "a"


def test_a_node_that_has_become_another_object_begins_anew() -> None:
    run = run_of("n")
    assert run.record("n", ONE).desired == "n"
    assert run.record("n", TWO).desired == ""
    assert run.record("n", TWO) is run.record("n", TWO)
    assert run.record("unknown", ONE).ref_id == ONE


def test_a_run_goes_on_where_its_status_ended() -> None:
    entry = InventoryEntry(id=ONE, version="v1", node="n", uid="u")
    run = again(entry, n=NodeStatus(phase="Ready", digests=NodeDigests(desired="d", owned="o")))
    assert run.inventory.uid(ONE) == "u"
    record = run.record("n", ONE)
    assert record.phase == "Ready"
    assert record.desired == "d"
    assert run.generation == -1


def test_digests_of_one_object_never_speak_for_another() -> None:
    entry = InventoryEntry(id=ONE, version="v1", node="n", uid="u")
    run = again(entry, n=NodeStatus(phase="Ready", digests=NodeDigests(desired="d", owned="o")))
    assert run.record("n", TWO).desired == ""


def test_what_was_observed_only_comes_back_without_an_entry() -> None:
    run = again(n=NodeStatus(phase="Ready"))
    assert run.record("n", ONE).phase == "Ready"


def test_a_problem_of_one_node_is_not_anothers() -> None:
    run = run_of("a", "b")
    run.records["a"].problem = Problem(reasons.INVALID, "it is wrong")
    run.plan(1, (node("a"), node("b")))
    assert run.records["b"].problem is None
    assert run.records["a"].problem is not None
