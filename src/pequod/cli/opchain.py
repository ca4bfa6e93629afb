"""`pequod opchain`: make what a chain is configured by.

Standard output holds manifests and nothing else, so that it can be kept in a file.
"""

import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer
import yaml
from rich.text import Text

from pequod.base.logs import one_line
from pequod.cli import cluster, terminal
from pequod.cli.cluster import ContextOption, KubeconfigOption

if TYPE_CHECKING:
    from pequod.cli.opchainsecrets import Files, Made, Read, Wanted
    from pequod.kube.client import Client, Write

app = typer.Typer(help="Make the Secrets that an OPChain is configured by.", no_args_is_help=True)

_STDIN = "-"
_LONGEST = 2000


class Format(StrEnum):
    """What is printed."""

    YAML = "yaml"
    JSON = "json"


def _file(what: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(metavar="FILE", help=what, show_default=False)
    return found


@app.command()
def secrets(  # noqa: PLR0913 -- a signature is the command line
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the OPChain.", show_default=False),
    ],
    *,
    genesis: Annotated[
        str, _file("What `op-deployer inspect genesis` prints; may be packed by gzip.")
    ],
    rollup: Annotated[str, _file("What `op-deployer inspect rollup` prints.")],
    batcher_key: Annotated[
        str | None, _file("Private key of the batcher: 64 hexadecimal digits.")
    ] = None,
    proposer_key: Annotated[
        str | None, _file("Private key of the proposer: 64 hexadecimal digits.")
    ] = None,
    jwt: Annotated[
        str | None,
        _file(
            "Secret of the engine API: 64 hexadecimal digits. Without it the operator makes one."
        ),
    ] = None,
    l1_chain: Annotated[
        str | None, _file("Chain configuration of an L1 that op-node does not know.")
    ] = None,
    l1_url: Annotated[
        str | None, _file("JSON-RPC endpoint of L1, for a URL that carries a key.")
    ] = None,
    l1_addresses: Annotated[
        str | None,
        _file("What `op-deployer inspect l1` prints: compared, and written into the OPChain."),
    ] = None,
    chain: Annotated[
        str | None,
        _file("Manifest of the OPChain: what it says is compared, and names the Secrets."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of the Secrets: that of --chain, or default.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Format | None,
        typer.Option(
            "--output", "-o", help="Print the Secrets instead of making them.", show_default=False
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Change Secrets that hold something else.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made; store nothing.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Check the files of a chain as the operator does, then make its Secrets.

    Everything that is wrong is said at once, and nothing is made then.
    A FILE may be -, for standard input. Keys are never shown, except by --output.
    Without --chain, an OPChain for the Secrets is printed.

    Exit code 0: made, or there already. 1: nothing was made. 2: wrong usage.
    """
    from pequod.cli.opchainsecrets import ROLES

    if output is not None and (dry_run or overwrite):
        raise typer.BadParameter("--output asks no cluster: leave --dry-run and --overwrite away")
    if chain is not None and l1_addresses is not None:
        raise typer.BadParameter("--chain has the addresses of L1: leave --l1-addresses away")
    found = _read(
        {
            "genesis": genesis,
            "rollup": rollup,
            "jwt": jwt,
            "l1_chain": l1_chain,
            "l1_url": l1_url,
            "batcher_key": batcher_key,
            "proposer_key": proposer_key,
            "l1_addresses": l1_addresses,
            "chain": chain,
        }
    )
    files = {role: found[role] for role in ROLES if role in found}
    wanted, made = _checked(name, files, found)
    place = _place(wanted, namespace)
    if output is not None:
        _print([_object(one, name, place) for one in made], output)
        return
    objects = [_object(one, name, place or "default") for one in made]

    async def main() -> list[str]:
        async with cluster.connected(kubeconfig, context) as client:
            return await _stored(client, objects, dry_run=dry_run, overwrite=overwrite)

    with cluster.explained():
        done = terminal.run(main)
    _tell(made, done, place or "default")
    _tell_next(wanted, files, chain, place)


def _read(paths: Mapping[str, str | None]) -> "dict[str, Read]":
    """All files that are named; ends with everything that cannot be read."""
    from pequod.cli.opchainsecrets import Read

    asked = {option: path for option, path in paths.items() if path is not None}
    if [*asked.values()].count(_STDIN) > 1:
        raise typer.BadParameter("only one of the files can come from standard input")
    found: dict[str, Read] = {}
    problems: list[str] = []
    for option, path in asked.items():
        try:
            found[option] = Read("standard input" if path == _STDIN else path, _content(path))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(f"--{option.replace('_', '-')}: {path} cannot be read: {why}")
    if problems:
        _refuse(problems)
    return found


def _content(path: str) -> bytes:
    from pequod.controllers.rollup.configuration import LARGEST_GENESIS as LARGEST

    if path == _STDIN:
        content = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return content


def _checked(name: str, files: "Files", found: "Mapping[str, Read]") -> "tuple[Wanted, list[Made]]":
    """The chain and its Secrets; ends with everything that is wrong."""
    from pequod.cli.opchainsecrets import from_files, from_manifest, secrets_of
    from pequod.controllers.rollup.configuration import InvalidConfigurationError

    try:
        if "chain" in found:
            wanted = from_manifest(found["chain"], name)
        else:
            wanted = from_files(name, files, found.get("l1_addresses"))
        return wanted, secrets_of(wanted, files)
    except InvalidConfigurationError as error:
        _refuse(error.problems)


def _refuse(problems: Sequence[str]) -> NoReturn:
    for problem in problems:
        line = Text("error: ", style="bold red")
        terminal.errors.print(line.append(one_line(problem, _LONGEST), style="not bold default"))
    terminal.errors.print("Nothing was made. Correct this, and run the command again.")
    raise SystemExit(1)


def _place(wanted: "Wanted", namespace: str | None) -> str | None:
    """The namespace that is meant; None when nobody says."""
    own = wanted.chain.metadata.namespace
    if namespace is not None and own not in {None, namespace}:
        _refuse([f"--namespace is {namespace}, but metadata.namespace of the OPChain is {own}"])
    return namespace or own


def _object(made: "Made", chain: str, namespace: str | None) -> dict[str, Any]:
    """A Secret as an API server takes it."""
    labels = {"app.kubernetes.io/instance": chain, "app.kubernetes.io/part-of": "opstack"}
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": made.name, **place, "labels": labels},
        "type": "Opaque",
        "data": {key: b64encode(content).decode() for key, content in made.data.items()},
    }


def _print(objects: Sequence[dict[str, Any]], output: Format) -> None:
    if output == Format.JSON:
        text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
        shown = msgspec.json.format(text).decode() + "\n"
    else:
        shown = "---\n".join(
            yaml.dump(one, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000) for one in objects
        )
    with terminal.explained():
        sys.stdout.write(shown)
        sys.stdout.flush()


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Metadata
    data: dict[str, str] | None = None

    def changes(self, wanted: Mapping[str, str]) -> dict[str, str | None]:
        """What must be written for it to hold what is wanted; None for what must go."""
        from pequod.cli.opchainsecrets import TWINS

        held = self.data or {}
        changes: dict[str, str | None] = {
            key: value for key, value in wanted.items() if held.get(key) != value
        }
        gone = {TWINS[key] for key in wanted if key in TWINS} & held.keys()
        return changes | dict.fromkeys(gone)


async def _stored(
    client: "Client", objects: Sequence[dict[str, Any]], *, dry_run: bool, overwrite: bool
) -> list[str]:
    """Make the Secrets; all are tried before the first is written. What became of each."""
    from pequod.kube.client import Write

    found = [await _found(client, one["metadata"]) for one in objects]
    changes = [
        before.changes(one["data"]) if before else {}
        for one, before in zip(objects, found, strict=True)
    ]
    if not overwrite:
        _require_same(objects, changes)
    done: list[str] = []
    for rehearsal in (True,) if dry_run else (True, False):
        how = Write(manager="pequod-cli", dry_run=rehearsal)
        done = [
            await _write(client, one, before, changed, how)
            for one, before, changed in zip(objects, found, changes, strict=True)
        ]
    return [f"would be {one}" if dry_run and one != "unchanged" else one for one in done]


async def _found(client: "Client", metadata: Mapping[str, str]) -> _Secret | None:
    from pequod.kube.errors import NotFoundError
    from pequod.kube.kinds import SECRETS

    name, namespace = metadata["name"], metadata["namespace"]
    try:
        return await client.get(SECRETS, name, namespace=namespace, type=_Secret)
    except NotFoundError:
        return None


async def _write(
    client: "Client",
    object_: dict[str, Any],
    before: _Secret | None,
    changes: Mapping[str, str | None],
    how: "Write",
) -> str:
    from pequod.kube.kinds import SECRETS

    if before is None:
        await client.create(SECRETS, object_, how)
        return "created"
    if not changes:
        return "unchanged"
    name, namespace = object_["metadata"]["name"], object_["metadata"]["namespace"]
    exactly = {"uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version}
    patch = {"metadata": exactly, "data": changes}
    await client.patch(SECRETS, name, patch, how, namespace=namespace)
    return "overwritten"


def _require_same(
    objects: Sequence[dict[str, Any]], changes: Sequence[Mapping[str, str | None]]
) -> None:
    """Nothing that somebody made is lost by mistake."""
    differing = [
        f"Secret {one['metadata']['name']} is there already, with another {', '.join(changed)}"
        for one, changed in zip(objects, changes, strict=True)
        if changed
    ]
    if differing:
        problem = "; ".join(differing)
        cluster.end(problem, "Nothing was made. Compare them, then give --overwrite.", 1)


def _tell(made: "Sequence[Made]", done: Sequence[str], namespace: str) -> None:
    for one, outcome in zip(made, done, strict=True):
        text = f"Secret {namespace}/{one.name} {outcome}: {'; '.join(one.notes)}"
        terminal.errors.print(text, markup=False)


def _tell_next(wanted: "Wanted", files: "Files", chain: str | None, place: str | None) -> None:
    """What is left to do; the OPChain, if there is none yet."""
    from pequod.cli.opchainsecrets import awaited, manifest

    missing = awaited(wanted, files)
    if missing:
        text = f"The chain waits for {', '.join(missing)} as well, unless they are there already."
        terminal.errors.print(text, markup=False)
    option = f" -n {place}" if place else ""
    if chain is not None:
        terminal.errors.print(f"Next: kubectl apply{option} -f {chain}", markup=False)
        return
    made = manifest(wanted, files)
    if place:
        made["metadata"]["namespace"] = place
    _print([made], Format.YAML)
    gaps = "fill in what stands in <>, and " if b"<" in msgspec.json.encode(made) else ""
    terminal.errors.print(f"Next: {gaps}apply this OPChain", markup=False)
