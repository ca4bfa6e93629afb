"""What a controller of one kind has to say for itself."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pequod.api.meta import Resource
from pequod.kube.cache import Cache, Index
from pequod.kube.objects import Key
from pequod.runtime.context import Context
from pequod.runtime.triggers import Trigger
from pequod.runtime.verdicts import Result

R = TypeVar("R", bound=Resource[Any, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Something that the operator must be allowed to do; `deploy/rbac/` is made of these."""

    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    group: str = ""
    names: tuple[str, ...] = ()


class Reconciler(ABC, Generic[R]):
    """Brings the world in line with one object; knows nothing of queues and patches.

    `reconcile` changes `object.status` in place; the frame publishes it. It looks and returns: what
    it would have to wait for is watched, and wakes the object.
    """

    kind: ClassVar[type[Resource[Any, Any]]]
    finalizer: ClassVar[str | None] = None
    """The finalizer that keeps objects until `finalize` has succeeded."""
    permissions: ClassVar[tuple[Permission, ...]] = ()
    """What it needs beyond its own kind."""
    concurrency: ClassVar[int] = 4
    indexes: ClassVar[Mapping[str, Index[Any]]] = {}
    """By which words, besides their keys, objects of the kind are found."""
    triggers: tuple[Trigger[Any], ...] = ()
    """What else wakes objects of the kind."""
    linger: ClassVar[float] = 1.0
    """Seconds for which an object that paces its statuses need not say that it is on its way."""
    patient: ClassVar[bool] = False
    """Whether that may be longer where the API server is slow: only people read such statuses."""
    quiet: ClassVar[frozenset[str]] = frozenset()
    """Conditions whose becoming true is no event: the reconciler tells more than they do."""

    def attach(self, wake: Callable[[Key], None], cache: Cache[R]) -> None:
        """Get to know how objects of the kind are woken, and what is known of all of them."""

    @abstractmethod
    async def reconcile(self, object_: R, ctx: Context) -> Result:
        """Do what can be done now; raise a verdict or an error for what cannot."""

    async def finalize(self, object_: R, ctx: Context) -> None:
        """Take back what was done; from the status alone, since everything else may be gone."""

    async def rest(self, object_: R) -> None:
        """Let what was made for an object rest as well: it asks to be left alone."""

    def steps(self, object_: R) -> tuple[str, ...]:
        """The conditions of an object, in the order of its steps."""
        return type(object_).definition.conditions

    def pace(self, object_: R) -> float:  # noqa: ARG002 -- for those who override it
        """Seconds between two statuses of an object that is still moving."""
        return 0.0

    def forget(self, key: Key) -> None:
        """An object is gone: drop whatever was remembered of it."""

    def reset(self) -> None:
        """Another replica leads: drop whatever was remembered of any object."""
