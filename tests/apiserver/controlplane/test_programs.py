"""Where the programs come from: the environment, a cache that may be read-only, a build."""

import os
import subprocess
from pathlib import Path

import pytest

from clusters import PEQUOD, pequod
from instances import foreground
from pequod.dev.places import cache_dir
from pequod.dev.programs import CONTROL_PLANE, EVALUATOR


def test_programs_named_by_the_environment_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = cache_dir() / CONTROL_PLANE.key() / "controlplane"
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).symlink_to(built)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    with foreground(tmp_path / "state", "up", "--node=none") as plane:
        plane.wait_until_ready()
        commands = {
            name: Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            for name, process in plane.state().components.items()
        }
    assert commands["etcd"] == str(assets / "etcd")
    assert commands["kube-apiserver"] == str(assets / "kube-apiserver")
    assert commands["kube-scheduler"] == str(built)


def test_a_read_only_cache_is_enough_once_it_is_filled(tmp_path: Path) -> None:
    builds = [cache_dir() / module.key() for module in (CONTROL_PLANE, EVALUATOR)]
    cache = tmp_path / "cache"
    cache.mkdir()
    for build in builds:
        (cache / build.name).symlink_to(build)
    cache.chmod(0o555)
    result = subprocess.run(
        [*_unprivileged(), *PEQUOD, "dev", "build"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PEQUOD_CACHE_DIR": str(cache)},
    )
    assert result.returncode == 0, result.stderr
    assert {path.name for path in cache.iterdir()} == {build.name for build in builds}


def _unprivileged() -> list[str]:
    """Root ignores read-only permissions; without two of its capabilities it obeys them."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]


def test_the_version_is_the_one_that_was_built(tmp_path: Path) -> None:
    version = pequod(
        "dev", "kubectl", "version", "--client", state=tmp_path, KUBECONFIG="/dev/null"
    ).stdout
    assert "Client Version: v1.36.3" in version
