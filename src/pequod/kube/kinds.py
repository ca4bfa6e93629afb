"""Kinds as an API server serves them: where their objects are."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pequod.api.meta import Definition, Resource


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version, with the path of its objects."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @classmethod
    def of(cls, resource: type[Resource[Any, Any]]) -> "Kind":
        """A kind of ours."""
        definition: Definition = resource.definition
        return cls(
            definition.group,
            definition.version,
            definition.kind,
            definition.plural,
            definition.scope == "Namespaced",
        )

    @property
    def api_version(self) -> str:
        """What its objects say as their `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Plural and group, as kubectl and RBAC name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, *, namespace: str | None = None, name: str | None = None, part: str | None = None
    ) -> str:
        """The path of a collection, an object, or a sub-resource (`part`) of it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{_segment(namespace)}" if self.namespaced and namespace else ""
        object_ = f"/{_segment(name)}" if name is not None else ""
        return f"{root}{place}/{self.plural}{object_}{f'/{part}' if part else ''}"

    def __str__(self) -> str:
        return f"{self.kind}.{self.api_version}"


_PLAIN = re.compile(r"[a-z0-9][-a-z0-9.]*")


def _segment(name: str) -> str:
    """A name as one segment of a path; never two, and never a step up."""
    if _PLAIN.fullmatch(name):
        return name
    if not name or name in {".", ".."} or "/" in name:
        raise ValueError(f"{name!r} cannot be a part of a path")
    return quote(name, safe=":@!$&'()*+,;=")


CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")
EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
SECRETS = Kind("", "v1", "Secret", "secrets")
SERVICE_ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
PODS = Kind("", "v1", "Pod", "pods")
