"""What is wrong with a configuration: everything at once, each with its place. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from pequod.controllers.rollup.accounts import NotAnAddressError, checksummed
from pequod.kube.objects import MISFITS

T = TypeVar("T")

MAX_NUMBER = 2**63 - 1
MOST_OBJECTS = 200_000
MOST_VALUES = 1_000_000
_ZERO = f"0x{'0' * 40}"
_SHOWN = 70
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class File:
    """One key of one Secret, and what it holds."""

    secret: str
    key: str
    content: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"Secret {self.secret}, {self.key}"


@dataclass(slots=True)
class Findings:
    """Problems, in the order in which they were found, each once."""

    problems: list[str] = field(default_factory=list)

    def add(self, place: object, problem: str) -> None:
        """Something is wrong, somewhere."""
        text = f"{place}: {problem}"
        if text not in self.problems:
            self.problems.append(text)


class Document:
    """A JSON object that is read piece by piece; what is wrong with a piece is a finding."""

    def __init__(self, file: File, root: Mapping[str, Any], findings: Findings) -> None:
        self.file = file
        self.root = root
        self._findings = findings
        self._wrong: set[str] = set()

    def wrong(self, path: str, problem: str) -> None:
        """Something is wrong at a path."""
        self._wrong.add(path)
        self._findings.add(f"{self.file}, {path}", problem)

    def is_wrong(self, path: str) -> bool:
        """Whether something is wrong there, or with what it is part of: nothing follows from it."""
        return any(path == bad or path.startswith(f"{bad}.") for bad in self._wrong)

    def find(self, path: str) -> object:
        """What is at a path of names, for example `.genesis.l1.hash`; None when nothing is."""
        value: object = self.root
        for name in path.removeprefix(".").split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
        return value

    def mapping(self, path: str) -> Mapping[str, Any] | None:
        """An object that must be there."""
        found = self.find(path)
        if isinstance(found, Mapping):
            return found
        self.wrong(path, "must be an object" if found is not None else "is missing")
        return None

    def number(
        self, path: str, *, least: int = 0, required: bool = True, text: bool = False
    ) -> int | None:
        """A whole number: as JSON has it; as text, with or without `0x`, where programs read it."""
        return self._read(path, lambda found: _number(found, least, text=text), required=required)

    def address(self, path: str, *, required: bool = True) -> str | None:
        """An address that is not zero; its checksum must be right if it has one."""
        return self._read(path, address, required=required)

    def hash(self, path: str) -> str | None:
        """32 bytes in hexadecimal digits, not all zero."""
        return self._read(path, _hash, required=True)

    def word(self, path: str) -> None:
        """32 bytes in hexadecimal digits, which may be zero."""
        found = self.find(path)
        if found is not None and not (isinstance(found, str) and _HASH.fullmatch(found)):
            self.wrong(path, f"must be 0x and 64 hexadecimal digits, not {_shown(found)}")

    def _read(self, path: str, parse: Callable[[object], T], *, required: bool) -> T | None:
        if self.is_wrong(path):
            return None
        found = self.find(path)
        if found is None:
            if required:
                self.wrong(path, "is missing")
            return None
        try:
            return parse(found)
        except ValueError as error:
            self.wrong(path, str(error))
            return None


def document(file: File, findings: Findings) -> Document | None:
    """A file as a JSON object; what cannot be one is a finding."""
    if file.content.count(b"{") + file.content.count(b"[") > MOST_OBJECTS:
        # Read, it would be many times larger than it is.
        findings.add(file, f"holds more than {MOST_OBJECTS:,} objects and lists")
        return None
    if file.content.count(b",") > MOST_VALUES:
        findings.add(file, f"holds more than {MOST_VALUES:,} values")
        return None
    try:
        root = msgspec.json.decode(file.content)
    except MISFITS as error:
        findings.add(file, f"is not JSON: {_short(error)}")
        return None
    if not isinstance(root, dict):
        findings.add(file, "must be a JSON object")
        return None
    return Document(file, root, findings)


def address(found: object) -> str:
    """An address with its checksum; raises ValueError."""
    try:
        made = checksummed(found)
    except NotAnAddressError as error:
        raise ValueError(str(error)) from error
    if made == _ZERO:
        raise ValueError("must not be the zero address")
    return made


def _number(found: object, least: int, *, text: bool) -> int:
    value: int | None = None
    if isinstance(found, int) and not isinstance(found, bool):
        value = found
    elif isinstance(found, str) and len(found) < _SHOWN and _NUMBER.fullmatch(found):
        if not text:
            raise ValueError(
                f"must be a number, not a text: write it without quotes, not {_shown(found)}"
            )
        value = int(found, 16 if found[:2] in {"0x", "0X"} else 10)
    if value is None:
        raise ValueError(f"must be a whole number, not {_shown(found)}")
    if not least <= value <= MAX_NUMBER:
        raise ValueError(f"must be between {least} and 2^63-1, not {_shown(found)}")
    return value


def _hash(found: object) -> str:
    if not isinstance(found, str) or not _HASH.fullmatch(found):
        raise ValueError(f"must be 0x and 64 hexadecimal digits, not {_shown(found)}")
    if int(found, 16) == 0:
        raise ValueError("must not be all zeros")
    return found.lower()


def _shown(found: object) -> str:
    text = msgspec.json.encode(found).decode()
    return text if len(text) <= _SHOWN else f"{text[:40]}…"


def _short(error: BaseException) -> str:
    return str(error)[:200]
