"""Everything that a graph intended or applied: the only licence to delete."""

import msgspec

from pequod.api.graph import InventoryEntry
from pequod.graph.inventory import Intent, Inventory
from pequod.graph.model import Ref

ONE = Ref("", "ConfigMap", "shop", "one")
TWO = Ref("apps", "Deployment", "shop", "two")


def intent(ref: Ref, node: str = "n", level: int = 0, version: str = "v1") -> Intent:
    return Intent(ref, version, node, level)


def test_what_is_intended_is_in_before_it_exists() -> None:
    inventory = Inventory()
    assert inventory.widen([intent(ONE, "a"), intent(TWO, "b", 1)])
    assert inventory.entries() == (
        InventoryEntry(id="shop_one__ConfigMap", version="v1", node="a"),
        InventoryEntry(id="shop_two_apps_Deployment", version="v1", node="b", level=1),
    )
    assert ONE.id in inventory
    assert inventory.uid(ONE.id) == ""
    assert len(inventory) == 2


def test_the_same_intentions_change_nothing() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE)])
    assert not inventory.widen([intent(ONE)])
    assert not inventory.widen([])


def test_other_intentions_about_an_object_are_worth_storing() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE)])
    inventory.learn(ONE.id, "u")
    for other in (
        intent(ONE, "m"),
        intent(ONE, level=4),
        intent(ONE, version="v2"),
        Intent(ONE, "v1", "n", 0, "Orphan"),
    ):
        assert inventory.widen([other])
        assert inventory.uid(ONE.id) == "u", "whatever it is, it is the same object"


def test_widening_never_loses_what_is_no_longer_asked_for() -> None:
    inventory = Inventory([InventoryEntry(id=ONE.id, version="v1", uid="u")])
    inventory.widen([intent(TWO)])
    assert [entry.id for entry in inventory] == [ONE.id, TWO.id]
    assert [entry.id for entry in inventory.stale([TWO.id])] == [ONE.id]
    assert inventory.stale([ONE.id, TWO.id, "unknown"]) == []


def test_an_object_is_known_by_its_uid_until_it_is_gone() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE)])
    inventory.learn(ONE.id, "u")
    inventory.learn(ONE.id, "u")
    assert inventory.uid(ONE.id) == "u"
    inventory.learn(ONE.id, "v")
    assert inventory.uid(ONE.id) == "v"
    inventory.forget_uid(ONE.id)
    inventory.forget_uid(ONE.id)
    assert inventory.uid(ONE.id) == ""
    assert ONE.id in inventory


def test_what_was_not_intended_is_not_learned() -> None:
    inventory = Inventory()
    inventory.learn(ONE.id, "u")
    inventory.forget_uid(ONE.id)
    inventory.drop(ONE.id)
    assert len(inventory) == 0
    assert inventory.uid(ONE.id) == ""


def test_what_is_gone_is_dropped() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE), intent(TWO)])
    inventory.drop(ONE.id)
    assert ONE.id not in inventory
    assert len(inventory) == 1


def test_an_inventory_may_change_while_it_is_looked_at() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE), intent(TWO)])
    for entry in inventory:
        inventory.drop(entry.id)
    assert inventory.entries() == ()


def test_an_inventory_comes_back_from_a_status() -> None:
    inventory = Inventory()
    inventory.widen([intent(ONE, "a"), intent(TWO, "b", 3)])
    inventory.learn(TWO.id, "u")
    stored = msgspec.json.encode(inventory.entries())
    again = Inventory(msgspec.json.decode(stored, type=tuple[InventoryEntry, ...]))
    assert again.entries() == inventory.entries()
