"""What the shipped roles let the operator do with the objects of graphs, and what they never do."""

from typing import Any

from pequod.crd.children import ABOUT, TO_WATCH, TO_WRITE, children_rbac


def _role(name: str) -> dict[str, Any]:
    (role,) = (
        document
        for document in children_rbac()
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == name
    )
    return role


def _kinds(name: str, verbs: list[str]) -> set[tuple[str, str]]:
    """The kinds of a role's defaults, all of which must have the same verbs."""
    rules = _role(f"{name}-defaults")["rules"]
    assert all(rule["verbs"] == verbs for rule in rules)
    return {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


WATCHED = _kinds("pequod-operator-children-watch", ["get", "list", "watch"])
WRITTEN = _kinds("pequod-operator-children-write", ["get", "create", "patch", "delete"])


def test_what_is_written_is_watched_as_well() -> None:
    assert WRITTEN < WATCHED


def test_what_reaches_beyond_a_namespace_or_gives_rights_is_only_watched() -> None:
    assert {resource for _, resource in WATCHED - WRITTEN} == {
        "clusterrolebindings",
        "clusterroles",
        "customresourcedefinitions",
        "namespaces",
        "persistentvolumes",
        "priorityclasses",
        "rolebindings",
        "roles",
        "storageclasses",
    }


def test_every_kind_is_named() -> None:
    assert not [kind for kind in WATCHED | WRITTEN if "*" in "".join(kind) or "/" in kind[1]]


def test_each_role_gathers_what_its_label_marks_and_says_no_rules_itself() -> None:
    for label, name in ((TO_WATCH, "watch"), (TO_WRITE, "write")):
        role = _role(f"pequod-operator-children-{name}")
        selector = {"matchLabels": {label: "true"}}
        assert role["aggregationRule"] == {"clusterRoleSelectors": [selector]}
        assert "rules" not in role
        defaults = _role(f"pequod-operator-children-{name}-defaults")
        assert defaults["metadata"]["labels"][label] == "true"
        assert f'{label}: "true"' in ABOUT


def test_both_roles_are_the_operators() -> None:
    bindings = [doc for doc in children_rbac() if doc["kind"] == "ClusterRoleBinding"]
    names = ["pequod-operator-children-watch", "pequod-operator-children-write"]
    assert [binding["roleRef"]["name"] for binding in bindings] == names
    account = {"kind": "ServiceAccount", "name": "pequod-operator", "namespace": "pequod-system"}
    assert all(binding["subjects"] == [account] for binding in bindings)
