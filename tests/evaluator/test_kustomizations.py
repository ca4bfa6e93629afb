"""Kustomizations that are complete by themselves; nothing is fetched, nothing is executed."""

from pathlib import Path
from typing import Any

import pytest

import evaluators
from pequod.evaluator.errors import EvaluationError, MissingError, ModuleError, OverLimitError
from pequod.evaluator.evaluator import Evaluator, Tree

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: web
          image: acme/web:1
          envFrom: [{configMapRef: {name: settings}}]
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {host: web.CHANGED.example.com}
spec:
  ports: [{port: 80}]
"""
BASE = {
    "base/deployment.yaml": DEPLOYMENT,
    "base/service.yaml": SERVICE,
    "base/kustomization.yaml": """\
resources: [deployment.yaml, service.yaml]
configMapGenerator:
  - name: settings
    literals: [level=info]
""",
}
OVERLAY = {
    "overlays/production/kustomization.yaml": """\
namespace: production
namePrefix: big-
resources: [../../base]
components: [../../components/monitored]
images:
  - name: acme/web
    newName: registry.example.com/web
    newTag: "2"
labels:
  - pairs: {stage: production}
configMapGenerator:
  - name: settings
    behavior: merge
    literals: [level=warn]
patches:
  - target: {kind: Deployment}
    patch: |
      - op: replace
        path: /spec/replicas
        value: 5
  - path: memory.yaml
replacements:
  - source: {kind: Deployment, name: web, fieldPath: metadata.namespace}
    targets:
      - select: {kind: Service}
        fieldPaths: [metadata.annotations.host]
        options: {delimiter: ".", index: 1}
""",
    "overlays/production/memory.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
        - name: web
          resources: {limits: {memory: 1Gi}}
""",
    "components/monitored/kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
commonAnnotations: {monitored: "yes"}
""",
}


def by_kind(objects: tuple[dict[str, Any], ...]) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in objects}


def folder(root: Path, kustomization: str, files: dict[str, str] | None = None) -> Tree:
    return Tree(root=evaluators.write(root, {"kustomization.yaml": kustomization, **(files or {})}))


async def test_a_base_builds_with_the_hash_of_what_it_generates(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    evaluators.write(tmp_path, BASE)
    built = by_kind(await evaluator.kustomization(Tree(root=tmp_path, path="base")))
    generated = built["ConfigMap"]["metadata"]["name"]
    assert generated.startswith("settings-")
    [container] = built["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": generated}}]


async def test_an_overlay_changes_its_base(evaluator: Evaluator, tmp_path: Path) -> None:
    evaluators.write(tmp_path, BASE | OVERLAY)
    tree = Tree(root=tmp_path, path="overlays/production")
    built = by_kind(await evaluator.kustomization(tree))
    deployment, service = built["Deployment"], built["Service"]
    assert deployment["metadata"] == {
        "name": "big-web",
        "namespace": "production",
        "labels": {"stage": "production"},
        "annotations": {"monitored": "yes"},
    }
    assert deployment["spec"]["replicas"] == 5
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/web:2"
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    assert service["metadata"]["annotations"]["host"] == "web.production.example.com"
    assert built["ConfigMap"]["data"] == {"level": "warn"}
    assert container["envFrom"] == [
        {"configMapRef": {"name": built["ConfigMap"]["metadata"]["name"]}}
    ]


async def test_building_twice_yields_equal_bytes(tmp_path: Path) -> None:
    evaluators.write(tmp_path, BASE | OVERLAY)
    params = Tree(root=tmp_path, path="overlays/production").params()
    async with evaluators.pool(size=1) as first, evaluators.pool(size=1) as second:
        once = bytes(await first.ask("kustomize", params))
        assert bytes(await first.ask("kustomize", params)) == once
        assert bytes(await second.ask("kustomize", params)) == once


@pytest.mark.parametrize(
    "remote",
    [
        "https://example.com/base.yaml",
        "https://github.com/acme/deploy//base?ref=v1",
        "github.com/acme/deploy/base",
        "git@github.com:acme/deploy.git",
        "ssh://git@example.com/deploy",
        "file:///etc",
        "http://169.254.169.254/latest/meta-data",
    ],
)
@pytest.mark.parametrize("key", ["resources", "components", "bases", "transformers"])
async def test_what_is_remote_is_refused_and_not_fetched(
    evaluator: Evaluator, tmp_path: Path, remote: str, key: str
) -> None:
    with pytest.raises(MissingError, match="remote bases are not fetched"):
        await evaluator.kustomization(folder(tmp_path, f"{key}: ['{remote}']\n"))


async def test_a_remote_base_of_a_base_is_refused(evaluator: Evaluator, tmp_path: Path) -> None:
    files = {"a/kustomization.yaml": "resources: [github.com/acme/deploy]\n"}
    with pytest.raises(MissingError, match=r"^a refers to github\.com/acme/deploy"):
        await evaluator.kustomization(folder(tmp_path, "resources: [a]\n", files))


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [../outside]\n",
        "resources: [../outside/secret.yaml]\n",
        "components: [../outside]\n",
        "resources: [/etc/hostname]\n",
        "resources: [OUTSIDE/secret.yaml]\n",
        "configMapGenerator: [{name: a, files: [../outside/secret.yaml]}]\n",
        "configMapGenerator: [{name: a, files: [OUTSIDE/secret.yaml]}]\n",
        "configMapGenerator: [{name: a, envs: [../outside/secret.yaml]}]\n",
        "secretGenerator: [{name: a, files: [/etc/hostname]}]\n",
        "patches: [{path: ../outside/secret.yaml}]\n",
        "replacements: [{path: ../outside/secret.yaml}]\n",
        "openapi: {path: ../outside/secret.yaml}\n",
        "crds: [../outside/secret.yaml]\n",
        "configurations: [../outside/secret.yaml]\n",
        "resources: [link.yaml]\n",
        "resources: [folder]\n",
        "configMapGenerator: [{name: a, files: [link.yaml]}]\n",
        "configMapGenerator: [{name: a, files: [folder/secret.yaml]}]\n",
    ],
)
async def test_nothing_outside_of_the_tree_is_read(
    evaluator: Evaluator, tmp_path: Path, kustomization: str
) -> None:
    outside = evaluators.write(
        tmp_path / "outside",
        {
            "secret.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n",
            "kustomization.yaml": "resources: [secret.yaml]\n",
        },
    )
    tree = folder(tmp_path / "tree", kustomization.replace("OUTSIDE", str(outside)))
    (tree.root / "link.yaml").symlink_to(outside / "secret.yaml")
    (tree.root / "folder").symlink_to(outside)
    with pytest.raises((MissingError, ModuleError)) as caught:
        await evaluator.kustomization(tree)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("kind", ["helmCharts", "helmChartInflationGenerator"])
async def test_charts_are_not_inflated(evaluator: Evaluator, tmp_path: Path, kind: str) -> None:
    chart = "[{name: web, chartName: web, repo: 'https://charts.example.com'}]"
    with pytest.raises(ModuleError, match="helmCharts are not inflated"):
        await evaluator.kustomization(folder(tmp_path, f"{kind}: {chart}\n"))


@pytest.mark.parametrize(
    "plugin",
    [
        "apiVersion: a.b/v1\nkind: Maker\nmetadata:\n  name: m\n  annotations:\n"
        "    config.kubernetes.io/function: |\n      exec: {path: ./make.sh}\n",
        "apiVersion: a.b/v1\nkind: Maker\nmetadata:\n  name: m\n  annotations:\n"
        "    config.kubernetes.io/function: |\n      container: {image: acme/make}\n",
        "apiVersion: a.b/v1\nkind: Maker\nmetadata: {name: m}\n",
        "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: m}\n"
        "name: web\nrepo: https://charts.example.com\n",
    ],
)
@pytest.mark.parametrize("inline", [True, False])
async def test_plugins_are_not_executed(
    evaluator: Evaluator, tmp_path: Path, plugin: str, *, inline: bool
) -> None:
    indented = "".join(f"    {line}\n" for line in plugin.splitlines())
    entry = f"  - |\n{indented}" if inline else "  - plugin.yaml\n"
    script = "#!/bin/sh\ntouch executed\n"
    tree = folder(tmp_path, f"generators:\n{entry}", {"make.sh": script, "plugin.yaml": plugin})
    (tmp_path / "make.sh").chmod(0o755)
    with pytest.raises(ModuleError):
        await evaluator.kustomization(tree)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("kustomization", "named"),
    [
        ("resources: [nowhere.yaml]\n", r"nowhere\.yaml, which is not in the tree"),
        ("resourcse: []\n", "resourcse"),
        ("resources: [a.yaml]\npatches: [{patch: 'kind: B'}]\n", "."),
        ("resources: {\n", "."),
    ],
)
async def test_a_broken_kustomization_is_explained(
    evaluator: Evaluator, tmp_path: Path, kustomization: str, named: str
) -> None:
    tree = folder(tmp_path, kustomization, {"a.yaml": SERVICE})
    with pytest.raises(EvaluationError, match=named) as caught:
        await evaluator.kustomization(tree)
    assert isinstance(caught.value, ModuleError | MissingError)
    assert str(tmp_path) not in str(caught.value)


async def test_a_folder_without_a_kustomization_says_so(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    with pytest.raises(MissingError, match=r"there is no kustomization\.yaml"):
        await evaluator.kustomization(Tree(root=tmp_path))


async def test_an_object_deeper_than_objects_are_is_over_the_limit(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    deep = f"{SERVICE}deep: {'[' * 2000}{']' * 2000}\n"
    with pytest.raises(OverLimitError, match="the result has more than 200 levels"):
        await evaluator.kustomization(folder(tmp_path, "resources: [a.yaml]\n", {"a.yaml": deep}))


async def test_case_75_a_line_break_in_an_entry_hides_nothing(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    evaluators.write(
        tmp_path / "other",
        {
            "kustomization.yaml": "resources: [secret.yaml]\n",
            "secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: hunter2}\n",
        },
    )
    for entry in ("x\\n/../../other", "kind: X\\n/../../other"):
        text = f'resources: ["{entry}"]\n'
        tree = evaluators.write(tmp_path / "tree", {"kustomization.yaml": text})
        with pytest.raises(EvaluationError) as refused:
            await evaluator.kustomization(Tree(root=tree))
        assert "hunter2" not in str(refused.value)
