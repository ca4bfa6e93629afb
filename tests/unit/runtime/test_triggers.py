"""From an event of another kind to the objects that it concerns."""

from collections.abc import Iterable

from children import Child, ChildMeta, Owner
from pequod.kube.cache import Change, Projection, Unreadable
from pequod.kube.kinds import CONFIG_MAPS, Kind
from pequod.kube.objects import Key, Metadata
from pequod.runtime.triggers import Trigger, by_index, by_label, by_owner

WIDGETS = Kind("test.pequod.io", "v1", "Widget", "widgets")
CLUSTER_WIDGETS = Kind("test.pequod.io", "v1", "Widget", "widgets", namespaced=False)


def no_lookup(_index: str, _word: str) -> Iterable[Key]:
    raise AssertionError("not asked")


def owned(*owners: Owner) -> Child:
    return Child(ChildMeta(owner_references=owners))


def test_by_owner_only_the_owners_of_the_kind_are_meant() -> None:
    child = owned(
        Owner("test.pequod.io/v2", "Widget", "mine"),
        Owner("test.pequod.io/v1", "Gadget", "other-kind"),
        Owner("other.io/v1", "Widget", "other-group"),
    )
    assert by_owner(WIDGETS)(child, no_lookup) == [Key("here", "mine")]
    assert by_owner(CLUSTER_WIDGETS)(child, no_lookup) == [Key("", "mine")]


def test_by_label_the_named_object_of_the_same_namespace_is_meant() -> None:
    mapper = by_label("pequod.io/widget")
    assert mapper(Child(ChildMeta(labels={"pequod.io/widget": "mine"})), no_lookup) == [
        Key("here", "mine")
    ]
    assert mapper(owned(), no_lookup) == []


def test_by_index_those_are_meant_who_refer_to_the_object() -> None:
    asked: list[tuple[str, str]] = []

    def lookup(index: str, word: str) -> Iterable[Key]:
        asked.append((index, word))
        return [Key("here", "a"), Key("here", "b")]

    assert [*by_index("secrets")(owned(), lookup)] == [Key("here", "a"), Key("here", "b")]
    assert asked == [("secrets", "here/child")]


def test_a_child_that_changes_hands_concerns_both() -> None:
    trigger = Trigger(CONFIG_MAPS, Projection(Child), by_owner(WIDGETS))
    change = Change(
        Key("here", "child"),
        owned(Owner("test.pequod.io/v1", "Widget", "before")),
        owned(Owner("test.pequod.io/v1", "Widget", "after")),
    )
    assert trigger.keys(change, no_lookup) == {Key("here", "before"), Key("here", "after")}


def test_what_cannot_be_read_concerns_nobody_that_could_be_known() -> None:
    trigger = Trigger(CONFIG_MAPS, Projection(Child), by_owner(WIDGETS))
    unreadable = Unreadable(Metadata("child"), "broken")
    assert trigger.keys(Change(Key("here", "child"), None, unreadable), no_lookup) == set()
