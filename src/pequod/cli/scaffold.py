"""A first module: small, complete, tested."""

import shutil
from pathlib import Path

from pequod.cli import terminal

_MODULE = """module: "example.com/{name}@v0"
language: version: "v0.17.0"
source: kind: "self"
"""

_INPUT = """package {package}

// What a developer writes.
#Input: {{
	// Text that is shown.
	message!: string & !="" | error("must be text that is not empty")
}}

input: #Input
context: {{
	name:      string
	namespace: string
}}
"""

_GRAPH = """package {package}

graph: {{
	metadata: name: context.name
	nodes: [{{
		id: "settings"
		object: {{
			apiVersion: "v1"
			kind:       "ConfigMap"
			metadata: {{
				name:      context.name
				namespace: context.namespace
			}}
			data: message: input.message
		}}
	}}]
}}
"""

_TEST = """input:
  message: hello
context:
  name: greeting
  namespace: default
expect:
  objects:
    - ConfigMap/greeting
"""

_REFUSED = """input: {}
expect:
  violations:
    - path: input.message
"""


def scaffold(folder: Path) -> list[Path]:
    """Write the files of a first module; refuses a folder that holds something."""
    _require_empty(folder)
    name = folder.absolute().name.lower()
    package = "".join(letter for letter in name if letter.isascii() and letter.isalnum())
    package = package if package[:1].isalpha() else f"module{package}"
    files = {
        "cue.mod/module.cue": _MODULE.format(name=package),
        "input.cue": _INPUT.format(package=package),
        "graph.cue": _GRAPH.format(package=package),
        "tests/greeting_test.yaml": _TEST,
        "tests/no_message_test.yaml": _REFUSED,
    }
    for relative, text in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [folder / relative for relative in files]


def copy_tree(source: Path, folder: Path) -> None:
    """Copy a tree, which may be read-only, to where it may be edited."""
    _require_empty(folder)
    shutil.copytree(
        source, folder, symlinks=True, dirs_exist_ok=True, copy_function=shutil.copyfile
    )
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        terminal.fail(f"{folder} is there already", "Name a folder that is empty, or not there.")
