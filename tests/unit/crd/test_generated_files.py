"""The generator writes what the types say, and notices what is out of date or not its own."""

from pathlib import Path

import pytest
import yaml

from pequod.api import KINDS
from pequod.api.gitops import Cluster
from pequod.api.reasons import REASONS
from pequod.crd import __main__ as generator
from pequod.crd.rbac import operator_rbac
from pequod.crd.reference import reasons_page, reference_page
from schemas import ROOT


def test_an_empty_tree_gets_a_crd_and_a_page_for_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator.write(tmp_path)
    crds = [yaml.safe_load(path.read_text()) for path in (tmp_path / "deploy/crds").iterdir()]
    names = {resource.definition.name for resource in KINDS}
    assert {crd["metadata"]["name"] for crd in crds} == names
    pages = {path.stem for path in (tmp_path / "docs/reference").iterdir()}
    assert pages == {kind.definition.kind.lower() for kind in KINDS} | {"reasons"}
    rights = ("rbac/operator", "rbac/children", "admission/resourcegraphs")
    assert all((tmp_path / f"deploy/{name}.yaml").exists() for name in rights)
    assert capsys.readouterr().out.count("generated ") == 2 * len(KINDS) + len(("reasons", *rights))
    assert generator.outdated_files(tmp_path) == []


def test_what_differs_or_does_not_belong_is_found_and_mended(tmp_path: Path) -> None:
    generator.write(tmp_path)
    changed = tmp_path / "docs/reference/cluster.md"
    changed.write_text("something else")
    foreign = [tmp_path / f"deploy/{name}/old.yaml" for name in ("admission", "crds", "rbac")]
    for path in foreign:
        path.touch()
    assert generator.outdated_files(tmp_path) == [*foreign, changed]
    generator.write(tmp_path)
    assert generator.outdated_files(tmp_path) == []
    assert not any(path.exists() for path in foreign)


def test_the_committed_files_are_up_to_date() -> None:
    assert generator.outdated_files(ROOT) == []


def test_checking_says_which_file_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    assert generator.main(["--check"]) == 1
    assert (
        "docs/reference/cluster.md is out of date: run `make generate`" in capsys.readouterr().err
    )
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


def test_a_page_says_what_a_user_looks_for() -> None:
    page = reference_page(Cluster)
    assert "- conditions: `Reachable`, `Authorized`, `Ready`" in page
    assert "| `kubeconfigSecretRef.key` | string | Key of the Secret" in page
    assert "**Required.**" in page
    assert "Default `true`." in page
    assert "| `labels` | map of string |" in page


def test_the_operator_may_do_what_its_controllers_declare_and_no_more() -> None:
    documents = {document["kind"]: document for document in operator_rbac()}
    role = documents["ClusterRole"]
    allowed = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert ("ajj.io", "clusters/status", "patch") in allowed
    assert not [entry for entry in allowed if "*" in entry]
    deleted = {entry[1] for entry in allowed if entry[2] == "delete"}
    assert deleted == {"controllerrevisions", "resourcegraphs", "secrets"}, "kept for sources"
    assert not [entry for entry in allowed if entry[2] == "update"]
    impersonated = [entry[:2] for entry in allowed if entry[2] == "impersonate"]
    assert impersonated == [("", "serviceaccounts")]
    assert documents["RoleBinding"]["metadata"]["namespace"] == "pequod-system"


def test_every_reason_is_explained() -> None:
    page = reasons_page()
    assert all(f"| `{word}` | {reason.sentence} |" in page for word, reason in REASONS.items())


def test_a_page_lists_the_rules_that_the_api_server_enforces() -> None:
    (transform,) = (kind for kind in KINDS if kind.definition.kind == "Transform")
    page = reference_page(transform)
    assert (
        "- `spec.rollout.steps[]`: a step sets exactly one of setWeight, pause, analysis." in page
    )
    assert "| `policies[].action` | `Enforce` \\| `Ignore` \\| `Warn` |" in page
    assert "| `input` | free-form object |" in page
