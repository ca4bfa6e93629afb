"""`make check` has teeth: each of its parts fails on what it is there to find."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENV = Path(sys.executable).parents[1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the work tree that a test may break."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "--quiet"], check=True, cwd=tmp_path)
    return tmp_path


def make(tree: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Run one target on the copy, with the environment of the original."""
    return subprocess.run(
        ["make", "--old-file", f"{VENV}/.installed", target, f"VENV={VENV}"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
    )


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize("target", ["lint", "layers", "generated", "files"])
def test_the_tree_as_it_is_passes(tree: Path, target: str) -> None:
    result = make(tree, target)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("api/meta.py", "import pequod.dev", "Layers: who may import whom BROKEN"),
        ("kube/questions.py", "import pequod.cli.app", "Layers: who may import whom BROKEN"),
        ("dev/ports.py", "import aiohttp", "Only kube speaks HTTP to API servers BROKEN"),
        ("dev/ports.py", "import rich", "Only cli knows the terminal BROKEN"),
        ("dev/ports.py", "import pequod.crd", "used at development time only BROKEN"),
    ],
)
def test_a_broken_layer_fails(tree: Path, file: str, line: str, contract: str) -> None:
    append(tree / "src/pequod" / file, f"\n{line}\n")
    result = make(tree, "layers")
    assert result.returncode != 0
    assert contract in result.stdout


def test_a_changed_type_without_its_generated_files_fails(tree: Path) -> None:
    types = tree / "src/pequod/api/gitops.py"
    types.write_text(types.read_text().replace("How many nodes", "The number of nodes"))
    result = make(tree, "generated")
    assert result.returncode != 0
    assert "deploy/crds/ajj.io_clusters.yaml is out of date: run `make generate`" in result.stderr
    assert "docs/reference/cluster.md is out of date" in result.stderr


def test_a_generated_file_that_nothing_generates_fails(tree: Path) -> None:
    (tree / "deploy/crds/old.yaml").write_text("kind: Old\n")
    result = make(tree, "generated")
    assert result.returncode != 0
    assert "deploy/crds/old.yaml is out of date" in result.stderr


def test_an_untyped_function_fails(tree: Path) -> None:
    append(tree / "src/pequod/dev/ports.py", "\n\ndef untyped(x):\n    return x\n")
    result = make(tree, "types")
    assert result.returncode != 0
    assert "Function is missing a type annotation" in result.stdout


def test_a_lint_finding_fails(tree: Path) -> None:
    append(tree / "src/pequod/dev/ports.py", "\nimport os\n")
    assert make(tree, "lint").returncode != 0


def test_a_file_that_nobody_can_read_in_one_go_fails(tree: Path) -> None:
    append(tree / "src/pequod/dev/ports.py", "# line\n" * 500)
    result = make(tree, "files")
    assert result.returncode != 0
    assert "split it" in result.stderr


def test_unfinished_work_without_an_issue_fails(tree: Path) -> None:
    append(tree / "src/pequod/dev/ports.py", "# TO" + "DO later\n")
    assert make(tree, "files").returncode != 0
