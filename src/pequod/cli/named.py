"""Objects as people name them on the command line: KIND/NAME."""

from typing import NoReturn

from pequod.api.platform import ResourceGraph, Transform
from pequod.api.rollup import OPChain
from pequod.cli import cluster

Drawn = type[Transform] | type[OPChain] | type[ResourceGraph]
"""What can be shown with everything that comes of it."""

_USAGE = 2
_NAMES: dict[str, Drawn] = {
    "transform": Transform,
    "transforms": Transform,
    "tf": Transform,
    "opchain": OPChain,
    "opchains": OPChain,
    "resourcegraph": ResourceGraph,
    "resourcegraphs": ResourceGraph,
    "rg": ResourceGraph,
}


def named(text: str) -> tuple[Drawn, str]:
    """The kind and the name of KIND/NAME."""
    word, slash, name = text.partition("/")
    kind = _NAMES.get(word.lower().partition(".")[0])
    if kind is None or not slash or not name:
        _unknown(text)
    return kind, name


def transform_named(text: str) -> str:
    """The name of a Transform, with or without its kind."""
    if "/" not in text:
        return text
    kind, name = named(text)
    if kind is not Transform:
        _unknown(text)
    return name


def _unknown(text: str) -> NoReturn:
    cluster.end(
        f"{text} names nothing that is known here",
        "Write transform/NAME, opchain/NAME or rg/NAME.",
        _USAGE,
    )
