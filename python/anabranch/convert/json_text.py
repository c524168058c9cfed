"""JSON with positions: parsed values, and the offset at which the value of a path begins."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anabranch.convert.content import Text
from anabranch.errors import UserError, nearest

Path = tuple["str | int", ...]

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of one half of a surrogate pair (RFC 8259 §7), which is no text without the other half."""
_SCALAR = re.compile(r"[^\s,\]}]+")


def parse(text: Text) -> Any:
    """The value of a JSON document.

    Raises:
        UserError: It is no JSON; the error has line and column.
    """
    from anabranch.files import stored

    try:
        value = json.loads(text.text)
        if _HALF.search(text.text):
            stored.check(value, Any)
        return value
    except stored.WrongShapeError as error:
        raise Node(text, None, tuple(reversed(error.path))).error(error.message) from None
    except json.JSONDecodeError as error:
        raise text.error(error.pos, f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise text.error(0, "the JSON is nested too deeply") from None
    except ValueError as error:
        # A number with thousands of digits.
        raise text.error(0, f"not valid JSON: {error}") from None


class Node:
    """A value of a document, with its path."""

    def __init__(self, text: Text, value: Any, path: Path = ()) -> None:
        self._text = text
        self.value = value
        self.path = path

    def error(self, message: str, hint: str | None = None) -> UserError:
        """An error about this value."""
        where = _dotted(self.path)
        return self._text.error(_offset(self._text.text, self.path), f"{where}{': ' if where else ''}{message}", hint)

    def get(self, key: str) -> Node | None:
        """A key's value, or ``None`` if it is missing or ``null``.

        Raises:
            UserError: This is no object.
        """
        if not isinstance(self.value, Mapping):
            raise self.error("an object was expected")
        value = self.value.get(key)
        return None if value is None else Node(self._text, value, (*self.path, key))

    def need(self, key: str) -> Node:
        """A key's value.

        Raises:
            UserError: It is missing.
        """
        found = self.get(key)
        if found is None:
            raise self.error(f'"{key}" was expected and is missing', nearest(key, map(str, self.value)))
        return found

    def items(self) -> list[tuple[str, Node]]:
        """The keys and values.

        Raises:
            UserError: This is no object.
        """
        if not isinstance(self.value, Mapping):
            raise self.error("an object was expected")
        return [(key, Node(self._text, value, (*self.path, key))) for key, value in self.value.items()]

    def entries(self) -> list[Node]:
        """The entries.

        Raises:
            UserError: This is no array.
        """
        if not isinstance(self.value, Sequence) or isinstance(self.value, str):
            raise self.error("an array was expected")
        return [Node(self._text, value, (*self.path, index)) for index, value in enumerate(self.value)]

    def number(self) -> float:
        """A finite number.

        Raises:
            UserError: This is none.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or abs(self.value) >= 1e300:
            raise self.error("a number was expected")
        if self.value != self.value:
            raise self.error("a number was expected")
        return float(self.value)

    def text(self) -> str:
        """A string.

        Raises:
            UserError: This is none.
        """
        if not isinstance(self.value, str):
            raise self.error("a string was expected")
        return self.value

    def maybe(self, key: str) -> float | None:
        """A key's number, or ``None`` if it is missing.

        Raises:
            UserError: It is no number.
        """
        found = self.get(key)
        return None if found is None else found.number()


def _dotted(path: Path) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else f"{'.' if out else ''}{part}"
    return out


def _offset(text: str, path: Path) -> int:
    """The offset of a path's value in a valid document."""
    at = _space(text, 0)
    for part in path:
        at = _space(text, at + 1)
        if isinstance(part, int):
            for _ in range(part):
                at = _space(text, _skip(text, at))
                at = _space(text, at + 1)
            continue
        found = None
        while text[at] != "}":
            end = _skip(text, at)
            key = json.loads(text[at:end])
            value = _space(text, _space(text, end) + 1)
            if key == part:
                # The last one of several equal keys counts, as in the parsed document.
                found = value
            at = _space(text, _skip(text, value))
            if text[at] == ",":
                at = _space(text, at + 1)
        at = found if found is not None else at
    return at


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _skip(text: str, at: int) -> int:
    """The end of the value that begins at ``at``."""
    depth = 0
    while True:
        at = _space(text, at)
        char = text[at]
        if char == '"':
            found = _STRING.match(text, at)
            at = found.end() if found else len(text)
        elif char in "[{":
            depth, at = depth + 1, at + 1
        elif char in "]}":
            depth, at = depth - 1, at + 1
        elif char in ",:":
            at += 1
        else:
            found = _SCALAR.match(text, at)
            at = found.end() if found else len(text)
        if depth == 0:
            return at
