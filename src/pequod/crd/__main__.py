"""Write the generated files, or check that they are up to date (`--check`)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pequod.api import KINDS
from pequod.crd import admission, children
from pequod.crd.definition import custom_resource_definition
from pequod.crd.rbac import operator_rbac
from pequod.crd.reference import reasons_page, reference_page

ROOT = Path(__file__).parents[3]

_FOLDERS = ("deploy/admission", "deploy/crds", "deploy/rbac", "docs/reference")
"""Where every file is generated, or named below."""

_BY_HAND = ("docs/reference/modules.md",)
"""Pages beside the generated ones that a person writes."""


def generated_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Every generated file of the work tree, with the content that it must have."""
    for resource in KINDS:
        crd = custom_resource_definition(resource)
        definition = resource.definition
        yield root / f"deploy/crds/{definition.group}_{definition.plural}.yaml", _yaml(crd)
        page = root / f"docs/reference/{definition.kind.lower()}.md"
        yield page, reference_page(resource)
    yield root / "docs/reference/reasons.md", reasons_page()
    yield root / "deploy/rbac/operator.yaml", _yaml(*operator_rbac())
    roles = _yaml(*children.children_rbac(), about=children.ABOUT)
    yield root / "deploy/rbac/children.yaml", roles
    policy = _yaml(*admission.resourcegraph_admission(), about=admission.ABOUT)
    yield root / "deploy/admission/resourcegraphs.yaml", policy


def outdated_files(root: Path) -> list[Path]:
    """Files whose content differs, and files in the generated folders that nothing generates."""
    wanted = dict(generated_files(root))
    present = {path for name in _FOLDERS for path in (root / name).glob("*") if path.is_file()}
    present -= {root / name for name in _BY_HAND}
    differing = {path for path, text in wanted.items() if not _holds(path, text)}
    return sorted(differing | (present - wanted.keys()))


def write(root: Path) -> None:
    """Bring every generated file up to date, and remove what nothing generates."""
    wanted = dict(generated_files(root))
    for path in outdated_files(root):
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
        sys.stdout.write(f"generated {path.relative_to(root)}\n")


def main(arguments: list[str]) -> int:
    """Run the generator; the exit code is 1 when `--check` finds something out of date."""
    if arguments != ["--check"]:
        write(ROOT)
        return 0
    outdated = outdated_files(ROOT)
    for path in outdated:
        sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make generate`\n")
    return 1 if outdated else 0


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


def _yaml(*documents: dict[str, Any], about: str = "") -> str:
    text: str = yaml.dump_all(
        documents, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100
    )
    comment = "".join(f"# {line}".rstrip() + "\n" for line in about.splitlines())
    gap = "#\n" if comment else ""
    return f"# Generated from the sources by `make generate`; do not edit.\n{gap}{comment}{text}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
