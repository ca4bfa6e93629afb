"""A projection that keeps what triggers go by: labels and owners."""

import msgspec


class Owner(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    name: str


class ChildMeta(msgspec.Struct, rename="camel", kw_only=True):
    name: str = "child"
    namespace: str = "here"
    uid: str = "1"
    resource_version: str = "1"
    labels: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()


class Child(msgspec.Struct):
    metadata: ChildMeta
