"""What users write: the types of every kind, and the vocabulary they share.

Pure declarations: no I/O, no behaviour beyond construction, and no import of ours but `base`.
The CRDs in `deploy/crds/` and the pages in `docs/reference/` are generated from these types
(`make generate`); the attribute docstring of a field is its description in both.

To add a kind: declare `<Kind>Spec`, `<Kind>Status` and `<Kind>` in its family's module, and name
`<Kind>` in `KINDS` below.
"""

from typing import Any

from pequod.api.gitops import Cluster
from pequod.api.meta import Resource
from pequod.api.platform import ResourceGraph, Transform
from pequod.api.rollup import OPChain

KINDS: tuple[type[Resource[Any, Any]], ...] = (Transform, ResourceGraph, OPChain, Cluster)
"""Every kind that this release installs, in the order of the reference."""
