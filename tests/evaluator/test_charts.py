"""Charts as people publish them, rendered without a cluster."""

import shutil
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evaluators
from pequod.evaluator.answers import Chart
from pequod.evaluator.errors import MissingError, ModuleError
from pequod.evaluator.evaluator import Evaluator, Release, Tree

CHARTS = Path(__file__).parent / "charts"
MINIMAL = "apiVersion: v2\nname: tiny\nversion: 0.1.0\n"


def release(values: dict[str, Any] | None = None, *, kube_version: str = "") -> Release:
    return Release(name="blue", namespace="team", values=values or {}, kube_version=kube_version)


def by_kind(chart: Chart, kind: str) -> dict[str, Any]:
    [found] = [one for one in chart.objects if one["kind"] == kind]
    return found


def by_name(chart: Chart) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in chart.objects}


def archive(folder: Path, target: Path) -> Path:
    """A chart as `helm package` makes it: without what .helmignore names."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:gz") as packed:
        packed.add(
            folder,
            arcname=folder.name,
            filter=lambda entry: None if entry.name.endswith(".md") else entry,
        )
    return target


@pytest.fixture
def web() -> Tree:
    return Tree(root=CHARTS, path="web")


@pytest.fixture
def shop(tmp_path: Path) -> Tree:
    """The umbrella, with one of its subcharts as an archive."""
    shutil.copytree(CHARTS / "shop", tmp_path / "shop")
    archive(CHARTS / "queue", tmp_path / "shop/charts/queue-2.0.1.tgz")
    return Tree(root=tmp_path, path="shop")


def tiny(root: Path, files: dict[str, str]) -> Tree:
    return Tree(root=evaluators.write(root, {"Chart.yaml": MINIMAL, **files}))


async def test_a_chart_renders_in_the_order_in_which_helm_applies(
    evaluator: Evaluator, web: Tree
) -> None:
    chart = await evaluator.chart(web, release())
    assert (chart.name, chart.version, chart.app_version) == ("web", "1.2.3", "4.5.6")
    assert [one["kind"] for one in chart.objects] == ["ConfigMap", "Service", "Deployment"]
    assert chart.notes == "blue answers on port 80."


async def test_helpers_and_the_release_are_known_to_the_templates(
    evaluator: Evaluator, web: Tree
) -> None:
    deployment = by_kind(await evaluator.chart(web, release()), "Deployment")
    assert deployment["metadata"] == {
        "name": "blue-web",
        "namespace": "team",
        "labels": {
            "app.kubernetes.io/name": "web",
            "app.kubernetes.io/instance": "blue",
            "app.kubernetes.io/version": "4.5.6",
            "helm.sh/chart": "web-1.2.3",
        },
    }
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "ghcr.io/acme/web:4.5.6"


async def test_values_are_merged_over_the_defaults_of_the_chart(
    evaluator: Evaluator, web: Tree
) -> None:
    values = {"image": {"tag": "9"}, "resources": {"limits": {"memory": "1Gi"}}, "replicas": 3}
    deployment = by_kind(await evaluator.chart(web, release(values)), "Deployment")
    assert deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "ghcr.io/acme/web:9"
    assert container["resources"] == {"limits": {"memory": "1Gi"}}


async def test_whole_numbers_of_values_stay_whole(evaluator: Evaluator, tmp_path: Path) -> None:
    chart = tiny(tmp_path, {"templates/a.yaml": "kind: A\nsize: {{ .Values.size }}\n"})
    rendered = await evaluator.chart(chart, release({"size": 12345678901}))
    assert rendered.objects[0]["size"] == 12345678901


async def test_files_templates_in_values_and_revisions_work_but_nothing_is_looked_up(
    evaluator: Evaluator, web: Tree
) -> None:
    data = by_kind(
        await evaluator.chart(
            web,
            Release(
                name="blue",
                namespace="team",
                values={"greeting": "{{ .Chart.Name }} of {{ .Release.Namespace }}"},
                revision=4,
                upgrade=True,
                kube_version="v1.31.2",
                api_versions=("monitoring.coreos.com/v1",),
            ),
        ),
        "ConfigMap",
    )["data"]
    assert data == {
        "motd": "be kind",
        "readme": "",
        "greeting": "web of team",
        "revision": "4",
        "upgrade": "true",
        "minor": "31",
        "existing": "0",
        "address": "",
        "monitored": "true",
    }


async def test_apis_that_the_cluster_lacks_are_not_announced(
    evaluator: Evaluator, web: Tree
) -> None:
    chart = await evaluator.chart(web, release())
    assert by_kind(chart, "ConfigMap")["data"]["monitored"] == "false"


async def test_hooks_are_apart_by_weight_with_their_delete_policies(
    evaluator: Evaluator, web: Tree
) -> None:
    chart = await evaluator.chart(web, release())
    assert [(one.object["metadata"]["name"], one.weight) for one in chart.hooks] == [
        ("blue-web-migrations", -5),
        ("blue-web-test", 0),
        ("blue-web-migrate", 5),
    ]
    [job] = [one for one in chart.hooks if one.object["kind"] == "Job"]
    assert set(job.events) == {"pre-install", "pre-upgrade"}
    assert job.delete_policies == ("before-hook-creation", "hook-succeeded")


async def test_definitions_of_the_crds_folder_are_apart(evaluator: Evaluator, web: Tree) -> None:
    [definition] = (await evaluator.chart(web, release())).crds
    assert definition["metadata"]["name"] == "routes.web.example.com"


async def test_an_archive_renders_like_its_folder(
    evaluator: Evaluator, web: Tree, tmp_path: Path
) -> None:
    archive(CHARTS / "web", tmp_path / "packed/web-1.2.3.tgz")
    packed = Tree(root=tmp_path, path="packed/web-1.2.3.tgz")
    from_archive = await evaluator.chart(packed, release())
    assert from_archive.objects == (await evaluator.chart(web, release())).objects


async def test_rendering_twice_yields_equal_bytes(web: Tree, shop: Tree) -> None:
    async with evaluators.pool(size=2) as first, evaluators.pool(size=1) as second:
        for tree in (web, shop):
            params = {**tree.params(), "release": "blue", "namespace": "team"}
            once = bytes(await first.ask("helm", params))
            assert bytes(await first.ask("helm", params)) == once
            assert bytes(await second.ask("helm", params)) == once


async def test_subcharts_get_their_values_the_global_ones_and_their_alias(
    evaluator: Evaluator, shop: Tree
) -> None:
    values = {"global": {"domain": "acme.io"}, "orders": {"depth": 11}}
    found = by_name(await evaluator.chart(shop, release(values)))
    assert found["cache"]["data"] == {"size": "2Gi", "host": "cache.acme.io"}
    assert found["orders"]["data"] == {"depth": "11", "domain": "acme.io"}
    assert found["mails"]["data"] == {"depth": "7", "domain": "acme.io"}


async def test_a_library_chart_and_imported_values_serve_their_parent(
    evaluator: Evaluator, shop: Tree
) -> None:
    chart = await evaluator.chart(shop, release())
    assert by_name(chart)["blue-shop"]["data"] == {"cache": "cache:6379"}
    assert chart.notes == ""


async def test_conditions_and_tags_leave_subcharts_out(evaluator: Evaluator, shop: Tree) -> None:
    values = {"tags": {"backend": False}, "cacheConnection": {"host": "redis", "port": 1}}
    without = await evaluator.chart(shop, release({**values, "cache": {"enabled": False}}))
    assert set(by_name(without)) == {"blue-shop"}
    assert by_name(without)["blue-shop"]["data"] == {"cache": "redis:1"}


async def test_a_dependency_that_is_not_vendored_is_named_with_the_way_out(
    evaluator: Evaluator, shop: Tree
) -> None:
    (shop.root / "shop/charts/queue-2.0.1.tgz").unlink()
    with pytest.raises(MissingError, match=r"needs queue.*`helm dependency update`"):
        await evaluator.chart(shop, release())


async def test_a_library_chart_by_itself_is_refused(evaluator: Evaluator) -> None:
    library = Tree(root=CHARTS, path="shop/charts/common")
    with pytest.raises(ModuleError, match="common is a library chart"):
        await evaluator.chart(library, release())


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replicas": "three"}, "/replicas.*string.*integer"),
        ({"replicas": -1}, "/replicas"),
        ({"service": {"port": 99999}}, "/service/port"),
        ({"image": None}, "image"),
    ],
)
async def test_values_against_the_schema_are_refused_with_the_field(
    evaluator: Evaluator, web: Tree, values: dict[str, Any], named: str
) -> None:
    with pytest.raises(ModuleError, match=f"(?s){named}"):
        await evaluator.chart(web, release(values))


async def test_a_required_value_is_asked_for_in_the_words_of_the_chart(
    evaluator: Evaluator, web: Tree
) -> None:
    with pytest.raises(ModuleError, match=r"ingress\.yaml:8.*ingress\.host is needed"):
        await evaluator.chart(web, release({"ingress": {"enabled": True}}))


async def test_a_cluster_that_the_chart_is_not_for_is_refused(
    evaluator: Evaluator, web: Tree
) -> None:
    with pytest.raises(ModuleError, match=r"for Kubernetes >=1\.25\.0-0 and this is v1\.20\.0"):
        await evaluator.chart(web, release(kube_version="v1.20.0"))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"allOf": [{"$ref": "other.json"}]},
        {"$schema": "http://127.0.0.1:1/meta.json"},
        {"$schema": "file:///etc/passwd"},
        {"properties": {"a": {"$dynamicRef": "https://example.com/#meta"}}},
    ],
)
async def test_a_schema_that_refers_elsewhere_is_refused(
    evaluator: Evaluator, tmp_path: Path, schema: dict[str, Any]
) -> None:
    chart = tiny(tmp_path, {"values.schema.json": msgspec.json.encode(schema).decode()})
    with pytest.raises(ModuleError, match=r"values\.schema\.json of tiny refers to"):
        await evaluator.chart(chart, release({"a": 1}))


async def test_a_schema_of_a_subchart_that_refers_elsewhere_is_refused(
    evaluator: Evaluator, shop: Tree
) -> None:
    (shop.root / "shop/charts/cache/values.schema.json").write_text('{"$ref": "http://x.y/z"}')
    with pytest.raises(ModuleError, match=r"of cache refers to http://x\.y/z"):
        await evaluator.chart(shop, release())


async def test_keys_that_are_there_twice_are_refused(evaluator: Evaluator, tmp_path: Path) -> None:
    chart = tiny(tmp_path, {"templates/a.yaml": "kind: A\nspec: {}\nspec: {a: 1}\n"})
    with pytest.raises(ModuleError, match=r'(?s)a\.yaml .*"spec" already'):
        await evaluator.chart(chart, release())


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("kind: A\nname: {{ .Values.x.y.z }}\n", r"tiny/templates/a\.yaml:2"),
        ("kind: A\n\nname: {{ nosuch }}\n", r"tiny/templates/a\.yaml:3"),
        ("{{ fail `not like this` }}", r"a\.yaml:1.*not like this"),
        ("{{ env `PATH` }}", r"a\.yaml:1.*env"),
        ("{{ expandenv `$PATH` }}", r"a\.yaml:1.*expandenv"),
        ("a: b: c\n", r"a\.yaml"),
    ],
)
async def test_a_broken_template_is_named_with_its_line(
    evaluator: Evaluator, tmp_path: Path, template: str, named: str
) -> None:
    with pytest.raises(ModuleError, match=f"(?s){named}") as caught:
        await evaluator.chart(tiny(tmp_path, {"templates/a.yaml": template}), release())
    assert str(tmp_path) not in str(caught.value)


async def test_a_folder_without_a_chart_says_so(evaluator: Evaluator, tmp_path: Path) -> None:
    with pytest.raises((ModuleError, MissingError), match=r"Chart\.yaml"):
        await evaluator.chart(Tree(root=tmp_path), release())
    with pytest.raises(MissingError, match="there is no nowhere in the tree"):
        await evaluator.chart(Tree(root=tmp_path, path="nowhere"), release())


async def test_a_chart_outside_of_the_tree_is_refused(evaluator: Evaluator, tmp_path: Path) -> None:
    tiny(tmp_path / "chart", {})
    (tmp_path / "tree").mkdir()
    with pytest.raises(ModuleError, match="leads out of the tree"):
        await evaluator.chart(Tree(root=tmp_path / "tree", path="../chart"), release())


@pytest.mark.parametrize("link", ["files/secret.txt", "templates/secret.yaml", "charts/secret"])
async def test_a_link_out_of_the_tree_is_never_followed(
    evaluator: Evaluator, tmp_path: Path, link: str
) -> None:
    """Argo CD leaked other tenants' files so: CVE-2022-24348."""
    outside = evaluators.write(
        tmp_path / "outside", {"token": "kind: canary", "Chart.yaml": MINIMAL}
    )
    template = "kind: A\ndata: {{ .Files.Get `files/secret.txt` | quote }}\n"
    chart = tiny(tmp_path / "tree", {"templates/a.yaml": template})
    place = chart.root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if link == "charts/secret" else outside / "token")
    with pytest.raises(ModuleError, match=f"{link} leads out of the tree"):
        await evaluator.chart(chart, release())
