"""A rendered graph as it is stored: its secrets apart, and a name for all of it. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pequod.api.graph import Graph, GraphMetadata, Node, SensitivePart
from pequod.api.meta import SecretKeyReference
from pequod.controllers.frontend.naming import shortened
from pequod.graph.desired import split_secret
from pequod.graph.digests import Digests

_HASH = 16
_SECRET_HASH = 10
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One rendering of a source."""

    nodes: tuple[Node, ...]
    metadata: GraphMetadata
    secret: str = ""
    """Name of the Secret with the sensitive parts; empty when there is none."""
    sensitive: Mapping[str, bytes] = field(repr=False)
    """What that Secret holds, by node."""

    @property
    def render_hash(self) -> str:
        """Equal hashes are equal graphs."""
        return self.metadata.render_hash or ""


def compiled(
    graph: Graph, *, name: str, digests: Digests, origin: GraphMetadata, now: datetime
) -> Compiled:
    """What is stored of a rendering; `name` is the graph's, `origin` says where it comes from."""
    plain, sensitive = _split(graph.nodes)
    secret = _secret_name(name, sensitive, digests)
    nodes = tuple(_with_part(node, secret) if node.id in sensitive else node for node in plain)
    metadata = msgspec.structs.replace(
        origin,
        name=graph.metadata.name or name,
        version=graph.metadata.version or origin.version,
        render_hash=hash_of(nodes),
        rendered_at=now,
    )
    return Compiled(nodes=nodes, metadata=metadata, secret=secret, sensitive=sensitive)


def hash_of(nodes: Sequence[Node]) -> str:
    """The digest of a rendering; what is secret is in it by the name of its Secret only."""
    text = msgspec.json.encode(nodes, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_HASH]


def _split(nodes: Sequence[Node]) -> tuple[list[Node], dict[str, bytes]]:
    plain, sensitive = [], {}
    for node in nodes:
        object_, part = split_secret(node.object)
        if part is not None:
            sensitive[node.id] = part
            plain.append(msgspec.structs.replace(node, object=object_))
        else:
            plain.append(node)
    return plain, sensitive


def _secret_name(name: str, sensitive: Mapping[str, bytes], digests: Digests) -> str:
    """Named for its content: another content is another Secret, and the old one stays as it is."""
    if not sensitive:
        return ""
    content = {id_: part.decode() for id_, part in sensitive.items()}
    # Names are for people and for the API server: no capital letters.
    digest = hashlib.sha256(digests.desired(content).encode()).hexdigest()[:_SECRET_HASH]
    return f"{shortened(name, _LONGEST_NAME)}-{digest}"


def _with_part(node: Node, secret: str) -> Node:
    part = SensitivePart(secret_ref=SecretKeyReference(name=secret, key=node.id))
    return msgspec.structs.replace(node, object_from=part)
