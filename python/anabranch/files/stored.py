"""The reader of JSON that anabranch has stored: checks the syntax, then the type of every value once.

A shape is an annotation: a ``TypedDict``, ``list[T]``, ``dict[str, T]``, ``tuple[A, B]`` (a list of
two values), a union, ``Literal``, ``Any`` or a plain type. ``Annotated[int, Range(1, 9)]`` has
bounds. After :meth:`StoredKind.read` every value has the type of its annotation. Keys that a shape
does not name are permitted: a later version may write them. In every document numbers are finite
and texts have no lone surrogates.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from anabranch.errors import UserError, nearest
from anabranch.files.files import MAX_RESULT_BYTES, parse_json, read_bytes

T = TypeVar("T")

MOST = 1.7976931348623157e308
"""The largest finite number: JSON permits larger ones, which Python reads as infinite."""
_SHOWN = 40
"""Characters of a wrong value in a message."""

_Check = Callable[[Any], None]


@dataclass(frozen=True)
class Range:
    """Bounds of a number, both included."""

    least: float
    most: float


class WrongShapeError(ValueError):
    """A value is not of its type.

    Attributes:
        message: The expected type, and the value that was found.
        path: Keys and indices of the value's path, outermost last.
        hint: The nearest valid name of a missing key.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[str | int] = []
        self.hint = hint

    def __str__(self) -> str:
        where = ".".join(str(part) for part in reversed(self.path))
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True)
class StoredKind(Generic[T]):
    """A kind of stored file.

    Attributes:
        shape: Its type.
        noun: Its name in messages, with the article.
        hint: Advice for a malformed file.
        is_partial: Keys may be missing, because the file may be of another version; present keys have their types.
        other: The reason why a document is of another kind; empty if it may be of this one.
    """

    shape: type[T]
    noun: str
    hint: str | None = None
    is_partial: bool = False
    other: Callable[[Any], str] | None = None

    def read(self, path: Path) -> T:
        """The content of a file.

        Raises:
            NoSuchFileError: There is none.
            UserError: It cannot be read, is not JSON, or a value is not of its type; the message has line and column.
        """
        return self.parse(str(path), read_bytes(path, most=MAX_RESULT_BYTES))

    def parse(self, file: str, content: bytes) -> T:
        """Parse content that has been read; ``file`` is its name in messages."""
        value = parse_json(content, file)
        wrong = self.other(value) if self.other is not None else ""
        if wrong:
            raise UserError(f"{file} {wrong}; {self.noun} was expected", hint=self.hint)
        try:
            check(value, self.shape, partial=self.is_partial)
        except WrongShapeError as error:
            raise self._placed(file, content, error) from None
        return typing.cast("T", value)

    def _placed(self, file: str, content: bytes, error: WrongShapeError) -> UserError:
        from anabranch.convert.content import Text
        from anabranch.convert.json_text import Node

        node = Node(Text.decode(file, content), None, tuple(reversed(error.path)))
        return node.error(f"{error.message}; {self.noun} was expected", error.hint or self.hint)


def check(value: Any, shape: Any, *, partial: bool = False) -> None:
    """Check a parsed document.

    Raises:
        WrongShapeError: A value is not of its type.
    """
    _checker(shape, partial)(value)


@cache
def _checker(shape: Any, partial: bool) -> _Check:
    """The checker of a shape, compiled once for each shape, because a sweep has many points."""
    origin, arguments = get_origin(shape), get_args(shape)
    if shape is Any or shape is object:
        return _plain
    if typing.is_typeddict(shape):
        return _table(shape, partial)
    if origin is Annotated:
        return _bounded(_checker(arguments[0], partial), arguments[1])
    if origin is Literal:
        return _one_of(arguments)
    if origin in (typing.Union, types.UnionType):
        inner = [_checker(one, partial) for one in arguments if one is not type(None)]
        return _union(inner, allows_null=type(None) in arguments)
    if origin is list:
        return _list(_checker(arguments[0], partial))
    if origin is dict:
        return _named(_checker(arguments[1], partial))
    if origin is tuple:
        return _tuple([_checker(one, partial) for one in arguments])
    if shape in _LEAVES:
        return _LEAVES[shape]
    raise TypeError(f"{shape} is no shape of stored JSON")


def _table(shape: Any, partial: bool) -> _Check:
    hints = get_type_hints(shape, include_extras=True)
    known = {name: _checker(_bare(hint), partial) for name, hint in hints.items()}
    required = frozenset() if partial else shape.__required_keys__

    def table(value: Any) -> None:
        if not isinstance(value, dict):
            raise _expected("a table", value)
        key = ""
        try:
            for key, inner in value.items():
                known.get(key, _plain)(inner)
        except WrongShapeError as error:
            error.path.append(key)
            raise
        if not required <= value.keys():
            name = next(name for name in known if name in required and name not in value)
            close = nearest(name, [key for key in value if key not in known])
            raise WrongShapeError(f'lacks "{name}"', close if close.startswith("did you") else None)

    return table


def _bare(hint: Any) -> Any:
    """The type inside ``NotRequired`` or ``Required``; ``__required_keys__`` records which keys are required."""
    return get_args(hint)[0] if str(get_origin(hint)).rpartition(".")[2] in ("NotRequired", "Required") else hint


def _named(inner: _Check) -> _Check:
    def named(value: Any) -> None:
        if not isinstance(value, dict):
            raise _expected("a table", value)
        key = ""
        try:
            for key, one in value.items():
                _text(key)
                inner(one)
        except WrongShapeError as error:
            error.path.append(key)
            raise

    return named


def _list(inner: _Check) -> _Check:
    def listed(value: Any) -> None:
        if type(value) is not list:
            raise _expected("a list", value)
        for at, one in enumerate(value):
            try:
                inner(one)
            except WrongShapeError as error:
                error.path.append(at)
                raise

    return listed


def _tuple(inner: list[_Check]) -> _Check:
    def several(value: Any) -> None:
        if type(value) is not list or len(value) != len(inner):
            raise _expected(f"a list of {len(inner)} values", value)
        for at, (one, check_one) in enumerate(zip(value, inner, strict=True)):
            try:
                check_one(one)
            except WrongShapeError as error:
                error.path.append(at)
                raise

    return several


def _union(inner: list[_Check], *, allows_null: bool) -> _Check:
    if len(inner) == 1:
        only = inner[0]

        def maybe(value: Any) -> None:
            if value is not None:
                only(value)

        return maybe

    def any_of(value: Any) -> None:
        if value is None and allows_null:
            return
        first: WrongShapeError | None = None
        for one in inner:
            try:
                one(value)
            except WrongShapeError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first

    return any_of


def _one_of(allowed: tuple[Any, ...]) -> _Check:
    kinds = {type(one) for one in allowed}
    words = " or ".join(json.dumps(one) for one in allowed)

    def one_of(value: Any) -> None:
        if type(value) not in kinds or value not in allowed:
            raise _expected(words, value)

    return one_of


def _bounded(inner: _Check, bounds: Range) -> _Check:
    def bounded(value: Any) -> None:
        inner(value)
        if value is not None and not bounds.least <= value <= bounds.most:
            raise _expected(f"{bounds.least} to {bounds.most}", value)

    return bounded


def _text(value: Any) -> None:
    if type(value) is not str:
        raise _expected("a text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongShapeError("half a character in a text") from None


def _whole(value: Any) -> None:
    if type(value) is not int:
        raise _expected("a whole number", value)
    if not -MOST <= value <= MOST:
        raise WrongShapeError("a number beyond all bounds")


def _number(value: Any) -> None:
    if type(value) is not float and type(value) is not int:
        raise _expected("a number", value)
    # False for infinity, as which 1e999 is read.
    if not -MOST <= value <= MOST:
        raise WrongShapeError("a number beyond all bounds")


def _flag(value: Any) -> None:
    if type(value) is not bool:
        raise _expected("true or false", value)


def _plain(value: Any) -> None:
    """Check JSON without a shape: only numbers and texts that no document may have are refused."""
    kind = type(value)
    if issubclass(kind, dict):
        _PLAIN_TABLE(value)
    elif kind is list:
        _PLAIN_LIST(value)
    elif kind is str:
        _text(value)
    elif kind is float or kind is int:
        _number(value)


_PLAIN_TABLE, _PLAIN_LIST = _named(_plain), _list(_plain)
_LEAVES: Mapping[Any, _Check] = {str: _text, int: _whole, float: _number, bool: _flag, dict: _PLAIN_TABLE}


def _expected(what: str, found: Any) -> WrongShapeError:
    if isinstance(found, (dict, list)):
        shown = ("an empty " if not found else "a ") + ("table" if isinstance(found, dict) else "list")
    else:
        shown = json.dumps(found)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return WrongShapeError(f"expected {what}, found {shown}")
