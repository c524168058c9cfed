"""Reads ``study.toml``: typed access to a TOML document; every error has file, line and column."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.text import toml_text

Number = (int, float)

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of figures and tables that become file names."""
FILE_NAME_HINT = "it becomes a file's name: letters, digits, dots, dashes and underscores, at most 100"


class Node:
    """A table of the document, with its position."""

    def __init__(self, document: Document, path: toml_text.Path, value: dict[str, Any]) -> None:
        self.document = document
        self.path = path
        self.value = value

    def error(self, message: str, *keys: str | int, hint: str | None = None, offset: int = 0) -> UserError:
        """An error at one of this table's keys, or at the table; ``offset`` characters into the value's text."""
        return self.document.error(message, (*self.path, *keys), hint=hint, offset=offset)

    def reject_unknown(self, known: Collection[str]) -> None:
        """Raise an error for a key other than ``known``."""
        for key in self.value:
            if key not in known:
                raise self.document.error(
                    f'unknown key "{key}"', (*self.path, key), hint=nearest(key, known), at_key=True
                )

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def text(self, key: str, default: str | None = None) -> str:
        """A text; required unless there is a default."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} must be text", key)
        return value

    def optional_text(self, key: str) -> str | None:
        """A text; ``None`` if absent."""
        return self.text(key) if key in self.value else None

    def number(self, key: str, default: float | None = None) -> float:
        """A number; required unless there is a default."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, Number):
            raise self.error(f"{key} must be a number", key)
        return float(value)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1; required unless there is a default."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.error(f"{key} must be a whole number of at least 1", key)
        return value

    def file_name(self, key: str) -> str:
        """A text that becomes the name of a file."""
        value = self.text(key)
        if not FILE_NAME.fullmatch(value):
            raise self.error(f'"{value}" cannot be the name of a file', key, hint=FILE_NAME_HINT)
        return value

    def day(self, key: str, what: str) -> str:
        """A day, as ISO 8601 writes it; required."""
        value = self.value.get(key)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value.isoformat()
        raise self.error(f"{key} must be {what}, as 2026-11-26", *((key,) if key in self.value else ()))

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.value.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key} must be true or false", key)
        return value

    def texts(self, key: str, valid: Collection[str] | None = None, what: str = "name") -> list[str] | None:
        """A list of texts, each among ``valid``; one text is a list of one. ``None`` if absent."""
        if key not in self.value:
            return None
        value = self.value[key]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise self.error(f"{key} must be a list of texts", key)
        for i, item in enumerate(items):
            if valid is not None and item not in valid:
                where = (key,) if isinstance(value, str) else (key, i)
                raise self.error(f'"{item}" is no {what}', *where, hint=nearest(item, valid))
        return list(items)

    def table(self, key: str) -> dict[str, Any]:
        """A table with any content; empty if absent."""
        value = self.value.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} must be a table", key)
        return value

    def child(self, key: str) -> Node | None:
        """A table to read further; ``None`` if absent."""
        return Node(self.document, (*self.path, key), self.table(key)) if key in self.value else None

    def children(self, key: str) -> Iterator[tuple[str, Node]]:
        """The named tables below ``key``: ``[key.NAME]``."""
        for name, value in self.table(key).items():
            if not isinstance(value, dict):
                raise self.error(f"{key}.{name} must be a table", key, name)
            yield name, Node(self.document, (*self.path, key, name), value)

    def entries(self, key: str) -> Iterator[Node]:
        """The tables of ``[[key]]``."""
        value = self.value.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise self.error(f"{key} must be written [[{key}]]", key)
        for i, entry in enumerate(value):
            yield Node(self.document, (*self.path, key, i), entry)

    def _get(self, key: str, default: object) -> Any:
        if key in self.value:
            return self.value[key]
        if default is None:
            raise self.error(f'"{key}" is missing')
        return default


class Document:
    """A parsed TOML file with the positions of all its entries."""

    def __init__(self, path: Path, text: str) -> None:
        self.file = str(path)
        self.text = text
        self.values = toml_text.parse(text, self.file)
        self.places = toml_text.locate(text)
        self.root = Node(self, (), self.values)

    def error(
        self,
        message: str,
        path: toml_text.Path,
        *,
        hint: str | None = None,
        offset: int = 0,
        at_key: bool = False,
    ) -> UserError:
        """An error at ``path``, or at the nearest enclosing table that has a position."""
        exact = path in self.places
        while path and path not in self.places:
            path = path[:-1]
        if not path:
            # The root of the document begins at its first line.
            first = toml_text.source_line(self.text, 1)
            return UserError(message, file=self.file, line=1, column=1, source=first, hint=hint)
        key, value = self.places[path]
        place = key if at_key and exact else value
        source = toml_text.source_line(self.text, place.line)
        # Point into the text of a one-line string; for a string over several lines, point at its opening quotes.
        inside = exact and offset > 0 and not source[place.column - 1 :].startswith(('"""', "'''"))
        column = place.column + offset + 1 if inside else place.column
        return UserError(message, file=self.file, line=place.line, column=column, source=source, hint=hint)
