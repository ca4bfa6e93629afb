"""Renderings that can be returned to, and which of them are kept. Pure.

A revision holds everything that a graph needs, except what is secret: neither the module nor its
source has to be there any more.
"""

import gzip
import zlib
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from pequod.api.graph import GraphMetadata, Node
from pequod.kube.objects import MISFITS, Object

MOST = 10
"""Revisions that are kept of a source."""
_LARGEST = 8 * 1024 * 1024
"""Bytes of a rendering that are read at most: whoever wrote them was not us."""


class UnreadableRevisionError(Exception):
    """A stored revision that does not hold a graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A revision, by what is known of it without reading it."""

    number: int
    render_hash: str
    created_at: datetime
    name: str
    uid: str
    digest: str = ""
    """Of the module that it was rendered from."""
    secret: str = ""
    """Name of the Secret with its sensitive parts; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a revision holds."""

    nodes: tuple[Node, ...]
    metadata: GraphMetadata


def packed(kept: Kept) -> Object:
    """A revision as a ControllerRevision holds it."""
    text = msgspec.json.encode(kept.nodes)
    return {
        "encoding": "gzip",
        # Without a time in it: equal renderings are equal bytes.
        "nodes": b64encode(gzip.compress(text, mtime=0)).decode(),
        "metadata": msgspec.to_builtins(kept.metadata),
    }


class _Packed(msgspec.Struct, frozen=True):
    nodes: str
    encoding: str = ""
    metadata: GraphMetadata = GraphMetadata()


def unpacked(data: object) -> Kept:
    """What a ControllerRevision of ours holds; raises UnreadableRevisionError."""
    try:
        found = msgspec.convert(data, _Packed)
        reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = reader.decompress(b64decode(found.nodes, validate=True), _LARGEST)
        if reader.unconsumed_tail:
            raise UnreadableRevisionError("it is larger than any graph")
        nodes = msgspec.json.decode(text, type=tuple[Node, ...])
    except (*MISFITS, msgspec.ValidationError, BadBase64, ValueError, zlib.error) as error:
        raise UnreadableRevisionError("it does not hold a graph") from error
    return Kept(nodes=nodes, metadata=found.metadata)


def next_number(known: Sequence[Stored]) -> int:
    """The number of another revision: it only grows."""
    return max((one.number for one in known), default=0) + 1


def surplus(known: Sequence[Stored], in_use: Collection[int], most: int = MOST) -> list[Stored]:
    """Revisions that need not be kept: the oldest ones, and none that is in use."""
    newest = sorted(known, key=lambda one: one.number, reverse=True)
    room = max(most - sum(1 for one in newest if one.number in in_use), 0)
    others = [one for one in newest if one.number not in in_use]
    return others[room:]
