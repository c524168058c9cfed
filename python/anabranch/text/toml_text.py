"""TOML as text: writing values, and locating keys in a document.

The standard parser gives values without positions, and errors need line and column. :func:`locate`
therefore scans the text a second time and records the position of every key and every value. It
accepts only valid documents.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = tuple[str | int, ...]

NESTED = "tables or lists are nested too deeply; a few levels were expected"

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class Place:
    """A position in a text: line and column from 1, in characters."""

    line: int
    column: int


def parse(text: str, file: str) -> dict[str, Any]:
    """The values of a TOML document.

    Raises:
        UserError: The document is not TOML; the error has file, line and column.
    """
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise UserError(NESTED, file=file or None) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _AT.search(message)
        lines = text.splitlines() or [""]
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (len(lines), len(lines[-1]) + 1)
        reason = _AT.sub("", message)
        raise UserError(
            f"not valid TOML: {reason[:1].lower()}{reason[1:]}",
            file=file,
            line=line,
            column=column,
            source=source_line(text, line),
        ) from None
    return values


def parse_value(text: str) -> Any:
    """A single TOML value; text that is not TOML is a string (the rule of ``--set``).

    Raises:
        UserError: It is nested too deeply.
    """
    try:
        document = tomllib.loads(f"value = {text}")
    except RecursionError:
        raise UserError(NESTED) from None
    except tomllib.TOMLDecodeError:
        return text
    return document["value"] if set(document) == {"value"} else text


def source_line(text: str, line: int) -> str:
    """The text of line ``line``, shortened if it is very long."""
    lines = text.splitlines()
    return lines[line - 1][:200] if 0 < line <= len(lines) else ""


def plain(value: Any) -> Any:
    """A copy of ``value`` in Python's own types; numpy's values become numbers and lists.

    Raises:
        UserError: The value has no TOML form (``None``, an object).
    """
    if isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    home = str(getattr(value, "__module__", ""))
    if callable(value) and home.startswith("anabranch.builders."):
        name = f"{home.rpartition('.')[2]}.{value.__name__}"
        raise UserError(f"{name} is a function and cannot be in a scenario", hint=f"call it: {name}()")
    hint = "use text, numbers, lists and mappings"
    if str(getattr(value, "__name__", "")).startswith("anabranch.builders."):
        hint = f"use one of its functions: dir({value.__name__.rpartition('.')[2]}) lists them"
    raise UserError(f"a {type(value).__name__} cannot be in a scenario", hint=hint)


def write_value(value: Any) -> str:
    """``value`` as inline TOML.

    Raises:
        UserError: The value has no TOML form (``None``, an object).
    """
    return _write(plain(value))


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _write_string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{write_key(k)} = {_write(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return f"[{', '.join(_write(v) for v in value)}]"


def write_key(key: str) -> str:
    """``key`` as one part of a dotted TOML key."""
    return key if _BARE.fullmatch(key) else _write_string(key)


def entries(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each value of a document's top level, and each entry of its tables of tables, with its keys."""
    for key, value in document.items():
        if isinstance(value, Mapping) and value and all(isinstance(inner, Mapping) for inner in value.values()):
            yield from (((key, name), inner) for name, inner in value.items())
        else:
            yield (key,), value


def write_document(document: Mapping[str, Any]) -> str:
    """A document with one ``[table.name]`` per entry of each top-level table, as in hand-written files."""
    top = [f"{write_key(k)} = {write_value(v)}" for k, v in document.items() if not _is_section(v)]
    blocks = ["\n".join(top)] if top else []
    for kind, entries in document.items():
        if not _is_section(entries):
            continue
        if isinstance(entries, list):
            blocks.extend("\n".join([f"[[{write_key(kind)}]]", *_lines(entry)]) for entry in entries)
        elif entries and all(isinstance(v, Mapping) for v in entries.values()):
            for name, entry in entries.items():
                blocks.append("\n".join([f"[{write_key(kind)}.{write_key(name)}]", *_lines(entry)]))
        else:
            blocks.append("\n".join([f"[{write_key(kind)}]", *_lines(entries)]))
    return "\n\n".join(blocks) + "\n"


def locate(text: str) -> dict[Path, tuple[Place, Place]]:
    """The positions of the key and of the value, for every key path of a valid TOML document.

    List entries have integer parts; a table's own header counts as its key and its value.
    """
    return _Locator(text).walk()


def _is_section(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _lines(entry: Mapping[str, Any]) -> list[str]:
    return [f"{write_key(str(k))} = {write_value(v)}" for k, v in entry.items()]


def _write_string(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    out = []
    for ch in text:
        if ch in escapes:
            out.append(escapes[ch])
        elif ord(ch) < 0x20 or ord(ch) == 0x7F:
            out.append(f"\\u{ord(ch):04X}")
        else:
            out.append(ch)
    return '"' + "".join(out) + '"'


class _Locator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, tuple[Place, Place]] = {}
        self.counts: dict[Path, int] = {}
        self.starts = [0]
        for index, ch in enumerate(text):
            if ch == "\n":
                self.starts.append(index + 1)

    def walk(self) -> dict[Path, tuple[Place, Place]]:
        table: Path = ()
        self.blank()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                start = self.place()
                self.at += 2
                table = self.real(self.key())
                index = self.counts.get(table, 0)
                self.counts[table] = index + 1
                self.found.setdefault(table, (start, start))
                table = (*table, index)
                self.found[table] = (start, start)
                self.end_of_line()
            elif self.text[self.at] == "[":
                start = self.place()
                self.at += 1
                table = self.real(self.key())
                for i in range(1, len(table) + 1):
                    self.found.setdefault(table[:i], (start, start))
                self.end_of_line()
            else:
                self.pair(table)
                self.end_of_line()
            self.blank()
        return self.found

    def real(self, key: Path) -> Path:
        """A header's path, with the newest index after every array of tables in it."""
        path: Path = ()
        for i, part in enumerate(key):
            path = (*path, part)
            if path in self.counts and i < len(key) - 1:
                path = (*path, self.counts[path] - 1)
        return path

    def pair(self, table: Path) -> None:
        start = self.place()
        key = self.key()
        self.space()
        self.at += 1  # "="
        self.space()
        value = self.place()
        for i in range(1, len(key)):
            self.found.setdefault((*table, *key[:i]), (start, start))
        path: Path = (*table, *key)
        self.found[path] = (start, value)
        self.value(path)

    def value(self, path: Path) -> None:
        ch = self.text[self.at]
        if ch == "[":
            self.at += 1
            index = 0
            self.blank()
            while self.text[self.at] != "]":
                start = self.place()
                entry: Path = (*path, index)
                self.found[entry] = (start, start)
                self.value(entry)
                index += 1
                self.blank()
                if self.text[self.at] == ",":
                    self.at += 1
                    self.blank()
            self.at += 1
        elif ch == "{":
            self.at += 1
            self.blank()
            while self.text[self.at] != "}":
                self.pair(path)
                self.blank()
                if self.text[self.at] == ",":
                    self.at += 1
                    self.blank()
            self.at += 1
        elif ch in "\"'":
            self.string()
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def key(self) -> Path:
        parts: list[str] = []
        while True:
            self.space()
            if self.text[self.at] in "\"'":
                parts.append(self.string())
            else:
                match = _BARE.match(self.text, self.at)
                if match is None:
                    raise ValueError("locate() was given a document that does not parse")
                parts.append(match[0])
                self.at = match.end()
            self.space()
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def string(self) -> str:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        while len(fence) == 3 and self.text[self.at : self.at + 1] == quote:
            self.at += 1
        value: str = tomllib.loads(f"v = {self.text[start : self.at]}")["v"]
        return value

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def blank(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r\n":
                self.at += 1
            elif self.text[self.at] == "#":
                self.end_of_line()
            else:
                return

    def end_of_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def place(self) -> Place:
        import bisect

        line = bisect.bisect_right(self.starts, self.at)
        return Place(line, self.at - self.starts[line - 1] + 1)
