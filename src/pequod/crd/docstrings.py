"""Attribute docstrings: the string below a field, which Python itself throws away.

They are read from the source of the class, so this works where the source is: at development time.
"""

import ast
import inspect
import textwrap
from functools import cache

_WITHOUT_SOURCE = {"builtins", "msgspec", "msgspec._core", "typing"}


@cache
def attribute_docstrings(cls: type) -> dict[str, str]:
    """The docstring of each attribute that `cls` and its bases declare, by attribute name."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ not in _WITHOUT_SOURCE:
            found |= _declared_in(base)
    return found


def class_docstring(cls: type) -> str:
    """The docstring that `cls` itself carries, as one paragraph."""
    return _one_paragraph(cls.__doc__ or "")


@cache
def _declared_in(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    (definition,) = tree.body
    if not isinstance(definition, ast.ClassDef):
        return {}
    pairs = zip(definition.body, definition.body[1:], strict=False)
    return {
        field.target.id: _one_paragraph(text.value.value)
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _one_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split())
