"""Values that nodes take from each other: `${nodes.db.status.host}` in a string of an object.

What stands between the braces is CEL over the live objects of other nodes. Strings in objects are
full of `${…}` that are not meant for us, so the rule which of them is an expression is a narrow
one. It is one when

- what follows `${` up to the brace that closes it can be read as CEL: its literals end, its braces
  are balanced, and nothing stands in it that CEL does not know, such as another `$`; and
- it mentions a node, as `nodes.<id>` or `nodes["<id>"]`, outside of its literals.

Everything else stays as it is, to the letter: `${HOME}`, `${HOME:-/root}`, `${nodes[@]}`. What
begins with `${nodes.` and cannot be read is refused rather than left alone: it was meant for us.
`$${` in front of what would be an expression is a literal `${`.

A Template is found once for each generation of a graph; everything here is pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from pequod.api.graph import Node
from pequod.base.logs import one_line
from pequod.kube.objects import Object

MAX_EXPRESSION = 4096
"""Characters of one expression."""
MAX_PLACES = 256
"""Strings of one object that hold expressions."""

_SHOWN = 200
"""Characters of an expression that a message has room for."""

Path = tuple[str | int, ...]

_FIXED: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("status",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)
"""What says which object it is, and what is never sent."""
_TOKEN = re.compile(
    r"""
    (?P<literal>
        (?:[rR][bB]?|[bB][rR])(?:\"{3}(?s:.*?)\"{3} | '{3}(?s:.*?)'{3} | "[^"\n]*" | '[^'\n]*')
      | [bB]?(?:
            \"{3}(?s:\\.|[^\\])*?\"{3} | '{3}(?s:\\.|[^\\])*?'{3}
          | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        )
      | `[^`\n]+`
    )
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<dot>\.\??)
  | (?P<open>\{)
  | (?P<close>\})
  | (?P<space>\s+)
  | (?P<other>[0-9]+|[-+*/%<>=!&|?:,()\[\]])
    """,
    re.VERBOSE,
)
_REFERENCE = re.compile(
    r"""nodes\s*(?:\.\s*([A-Za-z_][A-Za-z0-9_-]*)|\[\s*(?:"([^"\\\n]*)"|'([^'\\\n]*)')\s*\])"""
)
_MEANT = re.compile(r"""\s*nodes\s*(?:\.|\[\s*["'])""")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class UnfitValueError(Exception):
    """A value that cannot stand where it is to be filled in."""


class _MalformedError(Exception):
    """Something that was meant to be an expression, and is none."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What stands between the braces."""

    text: str
    """As it is written."""
    cel: str
    """As it is evaluated: ids may hold what names in CEL may not."""
    nodes: tuple[str, ...]
    """The nodes that it mentions."""

    def __str__(self) -> str:
        return f"${{{one_line(self.text, _SHOWN)}}}"


@dataclass(frozen=True, slots=True)
class Place:
    """A string of an object that holds expressions, or a literal `${`."""

    path: Path
    parts: tuple[str | Expression, ...]

    def __str__(self) -> str:
        return described(self.path)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Those of its parts that are to be filled in."""
        return tuple(part for part in self.parts if isinstance(part, Expression))

    def filled(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- any JSON
        """What stands there with values; that of a single expression keeps its type."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Expression):
            return values[self.parts[0].text]
        return "".join(
            part if isinstance(part, str) else self._inside(part, values[part.text])
            for part in self.parts
        )

    def _inside(self, expression: Expression, value: object) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return msgspec.json.encode(value).decode()
        what = "a list" if isinstance(value, list) else "a map"
        raise UnfitValueError(
            f"{expression} at {self} is {what}, and only a string, a number or a bool can stand "
            "inside of a string: take one of its fields, or make a string of it"
        )


@dataclass(frozen=True, slots=True)
class Template:
    """Where values of other nodes stand in an object."""

    places: tuple[Place, ...]
    sources: tuple[str, ...] = ()
    """The nodes that values are taken from."""
    problems: tuple[str, ...] = ()
    """What is wrong with how it is written."""

    @property
    def expressions(self) -> dict[Expression, Place]:
        """Every expression, and where it stands first."""
        found: dict[Expression, Place] = {}
        for place in self.places:
            for expression in place.expressions:
                found.setdefault(expression, place)
        return found

    def filled(self, object_: Mapping[str, Any], values: Mapping[str, Any]) -> Object:
        """An object with values, by the text of their expressions; raises UnfitValueError."""
        return self._with(object_, {place: place.filled(values) for place in self.places})

    def blanked(self, object_: Mapping[str, Any]) -> Object:
        """An object with nothing in the places of values: as far as it is known without them."""
        return self._with(
            object_,
            {place: "" if place.expressions else place.filled({}) for place in self.places},
        )

    def _with(self, object_: Mapping[str, Any], contents: Mapping[Place, Any]) -> Object:
        made = deepcopy(dict(object_))
        for place, content in contents.items():
            holder: Any = made
            for step in place.path[:-1]:
                holder = holder[step]
            holder[place.path[-1]] = content
        return made


def template(object_: Mapping[str, Any]) -> Template | None:
    """Where values of other nodes stand in an object; None when they stand nowhere."""
    places: list[Place] = []
    problems: list[str] = []
    for path, text in _strings(object_):
        try:
            parts = _parts(text)
        except _MalformedError as error:
            problems.append(f"{error} at {described(path)}: mend it, or write $${{ for a plain ${{")
            continue
        if parts is None:
            continue
        if isinstance(path[-1], _Key):
            problems.append(f"{described(path)} is a key: only values can be filled in")
            continue
        places.append(Place(path, parts))
    if len(places) > MAX_PLACES:
        problems.append(f"{len(places)} strings hold expressions and {MAX_PLACES} may: use fewer")
    if not places and not problems:
        return None
    sources = dict.fromkeys(id_ for one in places for part in one.expressions for id_ in part.nodes)
    return Template(tuple(places), tuple(sources), tuple(problems))


def problems(nodes: Sequence[Node], templates: Mapping[str, Template]) -> Iterator[str]:
    """What is wrong with the values that nodes take, each with its node, place and expression."""
    known = {node.id: node for node in nodes}
    for id_, found in templates.items():
        yield from (f"node {id_}: {problem}" for problem in found.problems)
        for expression, place in found.expressions.items():
            for other in expression.nodes:
                if why := _unusable(known[id_], known.get(other), other):
                    yield f"node {id_}: {expression} at {place} {why}"


def _unusable(node: Node, source: Node | None, name: str) -> str:
    """Why a node cannot take values from another one; empty when it can."""
    if source is None:
        return (
            f"mentions {name}, which is no node of the graph: name one, or write $${{ for a "
            "plain ${"
        )
    if source.id == node.id:
        return "mentions the node itself: a node can only take values from others"
    if (source.object.get("apiVersion"), source.object.get("kind")) == ("v1", "Secret"):
        return (
            f"would copy from the Secret of node {name} to where everybody can read it: refer to "
            "the Secret instead, with secretKeyRef, envFrom or a volume"
        )
    return ""


def described(path: Path) -> str:
    """A path for a person: `spec.ports[0].name`."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            shown += f".{step}" if shown else step
        else:
            shown += f'["{step}"]'
    return shown


class _Key(str):
    """The last step of a path that leads to a key, not to what it holds."""

    __slots__ = ()


def _strings(object_: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Every string that may hold an expression, keys included, in the order of the object."""
    todo: list[tuple[Path, Any]] = [((), object_)]
    while todo:
        path, value = todo.pop()
        if path in _FIXED:
            continue
        if isinstance(value, str):
            if "${" in value:
                yield path, value
        elif isinstance(value, dict):
            yield from (((*path, _Key(key)), key) for key in value if "${" in key)
            todo += [((*path, key), one) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            todo += [((*path, index), value[index]) for index in reversed(range(len(value)))]


def _parts(text: str) -> tuple[str | Expression, ...] | None:
    """A string in pieces; None when it stays as it is."""
    parts: list[str | Expression] = []
    literal, done, at = "", 0, text.find("${")
    mention = text.find("nodes")
    while at >= 0 and mention >= 0:
        if mention < at:
            mention = text.find("nodes", at)
            continue
        if mention - at > MAX_EXPRESSION:
            at = text.find("${", mention - MAX_EXPRESSION)
            continue
        escaped = at > done and text[at - 1] == "$"
        end = at + 2
        try:
            found = _expression(text, end)
        except _MalformedError:
            if not escaped:
                raise
            literal, done = literal + text[done : at - 1] + "${", end
        else:
            if found is not None and escaped:
                end = found[1]
                literal, done = literal + text[done : at - 1] + text[at:end], end
            elif found is not None:
                expression, end = found
                parts += [part for part in (literal + text[done:at],) if part]
                parts.append(expression)
                literal, done = "", end
        at = text.find("${", end)
    if not done:
        return None
    return (*parts, *(part for part in (literal + text[done:],) if part))


def _expression(text: str, start: int) -> tuple[Expression, int] | None:
    """The expression that begins after a `${`, and where it ends with its brace; None for none."""
    reader = _Reader(text, start)
    closed = reader.read()
    meant = _MEANT.match(text, start) is not None
    shown = f"${{{one_line(text[start : reader.at], _SHOWN)}"
    if not closed:
        # A shell's `$` or `;` says that it is none of ours; an end that never comes does not.
        if meant or (reader.nodes and reader.ended):
            raise _MalformedError(
                f"{shown} is not closed, is no CEL, or is longer than {MAX_EXPRESSION} characters,"
            )
        return None
    inner = text[start : reader.at - 1]
    if not reader.nodes and not meant:
        return None
    if reader.bare or not reader.nodes:
        raise _MalformedError(f'{shown} must name nodes as nodes.<id> or nodes["<id>"]')
    nodes = tuple(dict.fromkeys(reader.nodes))
    return Expression(inner, "".join(reader.cel), nodes), reader.at


class _Reader:
    """Reads CEL up to the brace that closes it, and writes ids so that CEL understands them."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._limit = min(len(text), start + MAX_EXPRESSION + 1)
        self.at = start
        self.cel: list[str] = []
        self.nodes: list[str] = []
        self.bare = False
        """Whether it speaks of `nodes` without saying which."""

    @property
    def ended(self) -> bool:
        """Whether there was nothing left to be read."""
        return self.at >= self._limit

    def read(self) -> bool:
        """Read; whether the closing brace was found."""
        depth, after_dot = 0, False
        while token := _TOKEN.match(self._text, self.at, self._limit):
            if token["word"] == "nodes" and not after_dot:
                self._refer(token)
                continue
            self.at = token.end()
            if token["close"]:
                if not depth:
                    return True
                depth -= 1
            depth += bool(token["open"])
            after_dot = bool(token["dot"]) or (after_dot and bool(token["space"]))
            self.cel.append(token[0])
        return False

    def _refer(self, token: re.Match[str]) -> None:
        reference = _REFERENCE.match(self._text, self.at, self._limit)
        if reference is None:
            self.bare = True
            self.cel.append(token[0])
            self.at = token.end()
            return
        id_ = next(name for name in reference.groups() if name is not None)
        self.nodes.append(id_)
        self.cel.append(f'nodes["{id_}"]')
        self.at = reference.end()
