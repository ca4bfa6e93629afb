"""Arguments and options that several commands about modules have."""

import re
from pathlib import Path
from typing import Annotated

import typer

from pequod.api.meta import NAME_PATTERN
from pequod.sources.credentials import ANONYMOUS, Credentials

ModuleArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE",
        help="A folder, embedded:NAME, oci://… or git+https://…?ref=…&path=…",
        show_default=False,
    ),
]
InputOption = Annotated[
    str,
    typer.Option(
        "--input", "-i", metavar="INPUT", help="YAML or JSON file, or - for standard input."
    ),
]


def _label(text: str) -> str:
    if not re.fullmatch(NAME_PATTERN, text) or len(text) > 63:
        raise typer.BadParameter("at most 63 small letters, digits and dashes, as in shop-1")
    return text


NameOption = Annotated[
    str, typer.Option("--name", callback=_label, help="context.name of the module.")
]
NamespaceOption = Annotated[
    str,
    typer.Option("--namespace", "-n", callback=_label, help="context.namespace of the module."),
]
CredentialsOption = Annotated[
    Path | None,
    typer.Option(
        help="A Secret manifest with what a pullSecretRef would hold, for a MODULE that needs it.",
        show_default=False,
    ),
]
CueRegistryOption = Annotated[
    str | None,
    typer.Option(
        envvar="PEQUOD_CUE_REGISTRY",
        metavar="HOST[/PATH]",
        help="Registry of the CUE modules that MODULE imports; without it nothing is fetched.",
        show_default=False,
    ),
]


def credentials_of(path: Path | None) -> Credentials:
    """What a Secret manifest on disk holds."""
    if path is None:
        return ANONYMOUS
    from pequod.cli.secretfile import read_secret_file

    return read_secret_file(path)
