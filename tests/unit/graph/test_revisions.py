"""Renderings that can be returned to."""

import gzip
from base64 import b64encode
from datetime import UTC, datetime

import pytest

from pequod.api.graph import GraphMetadata, Node
from pequod.graph.revisions import (
    Kept,
    Stored,
    UnreadableRevisionError,
    next_number,
    packed,
    surplus,
    unpacked,
)

NODE = Node(id="a", object={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def stored(number: int) -> Stored:
    at = datetime(2026, 11, 15, tzinfo=UTC)
    return Stored(number=number, render_hash="h", created_at=at, name=str(number), uid="u")


def test_what_is_packed_can_be_unpacked_and_is_the_same_each_time() -> None:
    kept = Kept(nodes=(NODE,), metadata=GraphMetadata(render_hash="h"))
    assert unpacked(packed(kept)) == kept
    assert packed(kept) == packed(kept)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"nodes": 7},
        {"nodes": "no base64!"},
        {"nodes": b64encode(b"no gzip").decode()},
        {"nodes": b64encode(gzip.compress(b"no json")).decode()},
        {"nodes": b64encode(gzip.compress(b'[{"id": 1}]')).decode()},
        {"nodes": b64encode(gzip.compress(b" " * 2**24)).decode()},
    ],
)
def test_what_holds_no_graph_is_named_as_such(data: object) -> None:
    with pytest.raises(UnreadableRevisionError):
        unpacked(data)


def test_numbers_only_grow() -> None:
    assert next_number([]) == 1
    assert next_number([stored(7), stored(3)]) == 8


def test_the_oldest_go_and_what_is_in_use_stays() -> None:
    known = [stored(number) for number in range(1, 13)]
    assert [one.number for one in surplus(known, set())] == [2, 1]
    assert [one.number for one in surplus(known, {1, 12})] == [3, 2]
    assert surplus(known[:10], set()) == []
