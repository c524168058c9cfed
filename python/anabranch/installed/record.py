"""The record of an installed control: written before each change, so that an interrupted one can be undone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from anabranch.errors import UserError
from anabranch.files.files import MAX_TEXT_BYTES, read_bytes, read_json
from anabranch.files.output_file import write_whole

STATE = Path("/var/lib/anabranch/cc")
"""Records, and copies of installed files."""
_LOCKED = Path("/var/lib")
"""The directory whose lock serializes changes: it is on every machine, and never removed."""
_MOST_BYTES = 1 << 20

Kind = Literal["default", "route", "cgroup"]
_KINDS = ("default", "route", "cgroup")


@dataclass(frozen=True)
class Scope:
    """Connections that use the control by default.

    Attributes:
        kind: All of the machine (of this network namespace), those of a route, or those of a cgroup.
        where: The route's prefix, or the cgroup's directory; empty for the machine.
        former: The control that was there before, if any.
        formers: The controls that the routes had before, by :attr:`anabranch.installed.routes.Route.key`.
    """

    kind: Kind
    where: str = ""
    former: str | None = None
    formers: tuple[tuple[str, str | None], ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the scope."""
        return self.kind, self.where

    @property
    def option(self) -> tuple[str, ...]:
        """The option that chooses it."""
        return (f"--{self.kind}", self.where) if self.where else (f"--{self.kind}",)

    def shown(self) -> str:
        """The scope in words."""
        return f"{self.kind} {self.where}".strip()


@dataclass(frozen=True)
class Record:
    """An installed control.

    Attributes:
        name: Its name in the kernel.
        given: The name with which it ships, or the copy of its file.
        scopes: Its scopes.
    """

    name: str
    given: str
    scopes: tuple[Scope, ...] = ()

    @property
    def file(self) -> Path:
        """The record's file."""
        return STATE / f"{self.name}.json"

    @property
    def is_file(self) -> bool:
        """Whether it comes from a file instead of shipping."""
        return self.given == str(copy_of(self.name))

    def is_copy(self, content: bytes) -> bool:
        """Whether its file has this content."""
        copy = copy_of(self.name)
        return self.is_file and copy.is_file() and read_bytes(copy, most=MAX_TEXT_BYTES) == content

    def with_scope(self, scope: Scope) -> Record:
        """The record with one more scope, or with another former control of a scope."""
        others = tuple(one for one in self.scopes if one.key != scope.key)
        return replace(self, scopes=(*others, scope))

    def scope(self, like: Scope) -> Scope | None:
        """The scope of the same kind and place."""
        return next((one for one in self.scopes if one.key == like.key), None)

    def write(self) -> None:
        """Write the record."""
        scopes = [
            {"kind": one.kind, "where": one.where, "former": one.former, "formers": dict(one.formers)}
            for one in self.scopes
        ]
        content = {"format": 1, "name": self.name, "given": self.given, "scopes": scopes}
        write_whole(self.file, json.dumps(content, indent=1).encode() + b"\n")


def copy_of(name: str) -> Path:
    """The place for the copy of a control's file."""
    return STATE / f"{name}.bpf.c"


def find(name: str) -> Record | None:
    """The record of a control, by its name in the kernel.

    Raises:
        UserError: The file is no record.
    """
    file = STATE / f"{name}.json"
    return _read(file) if file.exists() else None


def all_records() -> list[Record]:
    """All records, by name.

    Raises:
        UserError: A file is no record.
    """
    return [_read(file) for file in sorted(STATE.glob("*.json"))] if STATE.is_dir() else []


def _read(file: Path) -> Record:
    content: Any = read_json(file, most=_MOST_BYTES)
    try:
        if content["format"] != 1 or content["name"] != file.stem:
            raise ValueError
        scopes = tuple(_scope(one) for one in content["scopes"])
        return Record(str(content["name"]), str(content["given"]), scopes)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{file} is no record of an installed control of this version",
            hint=f"move it away: mv {file} /root, and install the control again",
        ) from None


def _scope(content: dict[str, Any]) -> Scope:
    if content["kind"] not in _KINDS:
        raise ValueError
    formers = tuple(dict(content.get("formers", {})).items())
    return Scope(content["kind"], str(content["where"]), content["former"], formers)


@contextmanager
def locked() -> Iterator[None]:
    """Wait until no other process changes installed controls."""
    descriptor = os.open(_LOCKED, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_empty() -> None:
    """Remove the empty folders of records."""
    for folder in (STATE, STATE.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()
