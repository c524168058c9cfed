"""The axes of a grid: normalized dotted paths, distinct values, and the attribution of errors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from anabranch._engine import ScenarioError
from anabranch.errors import UserError, is_of_change
from anabranch.text import shown, spoken, toml_text
from anabranch.text.spoken import argument

MAX_PATH = 4096
"""Characters of a path."""


MAX_POINTS = 10_000_000
"""Runs in one sweep. A larger number is a mistake in the grid."""

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def axis_path(path: str) -> str:
    """``path`` in normalized form: ``flow."main".cc`` is ``flow.main.cc``.

    Raises:
        UserError: It is no dotted TOML key, or a key that a sweep may not vary.
    """
    keys = keys_of(path)
    if keys[0] == "seed":
        raise UserError(
            "a grid does not vary seed", hint=f"{argument('repeat', 'N')} runs N seeds from the scenario's seed on"
        )
    if keys[0] == "sweep":
        raise UserError(f"a grid does not vary {path.strip()}: a sweep does not vary itself")
    return ".".join(toml_text.write_key(part) for part in keys)


def one_spelling(path: str) -> str:
    """``path`` in the form of :func:`axis_path`, without a check of its target.

    Raises:
        UserError: It is no dotted TOML key.
    """
    return ".".join(toml_text.write_key(part) for part in keys_of(path))


def axes_of(grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The axes of one grid by their normalized paths, in order.

    Raises:
        UserError: A path is wrong or is given twice, or an axis has no value or equal values.
    """
    axes: dict[str, Sequence[Any]] = {}
    if not isinstance(grid, Mapping):
        raise UserError(
            f"grid={shown.python(grid)}: a mapping of paths to lists of values was expected",
            hint='for example {"flow.main.cc": ["reno", "cubic"]}',
        )
    grid = {path: _listed(path, values) for path, values in grid.items()}
    count = math.prod(len(values) for values in grid.values())
    if count > MAX_POINTS:
        raise UserError(f"the grid has {count:,} points; at most {MAX_POINTS:,} were expected")
    for written, values in grid.items():
        path = axis_path(written)
        if path in axes:
            raise UserError(
                f"the grid gives {path} twice", hint=f"give its values together: {spoken.grid(path, 'A,B,C')}"
            )
        if not values:
            raise UserError(f"the grid gives no value for {path}", hint=spoken.grid(path, "A,B,C"))
        _reject_equal(path, values)
        axes[path] = values
    return axes


def _listed(path: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of an axis; numpy's types are converted to Python's.

    Raises:
        UserError: They are one value, not a list of values.
    """
    kept = toml_text.plain(values)
    if not isinstance(kept, list):
        raise UserError(
            f"the grid gives {path} one value; a list of values was expected", hint=f"[{shown.python(values)}]"
        )
    return kept


def sets_of(axes: Mapping[str, Sequence[Any]], values: Sequence[Any]) -> list[str]:
    """One point's values as ``PATH=VALUE``."""
    return [f"{path}={toml_text.write_value(value)}" for path, value in zip(axes, values, strict=True)]


def short_names(paths: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that distinguish all of them."""
    parts = [[toml_text.write_key(part) for part in keys_of(path)] for path in paths]
    length = [1] * len(paths)
    while True:
        names = [".".join(own[-n:]) for own, n in zip(parts, length, strict=True)]
        again = [i for i, name in enumerate(names) if names.count(name) > 1 and length[i] < len(parts[i])]
        if not again:
            return names
        for i in again:
            length[i] += 1


def reject_ignored(sets: Sequence[str], axes: Mapping[str, Sequence[Any]], given: Iterable[str] = ()) -> None:
    """Refuse changes that no run of a sweep would have, because an axis sets the same path.

    Args:
        sets: The changes, as ``PATH=VALUE``.
        axes: The axes of the sweep.
        given: The axes that do not come from ``[sweep]``, which they replace.

    Raises:
        UserError: There is such a change.
    """
    grid = set(given)
    for change in sets:
        written, _, value = change.partition("=")
        try:
            path = keys_of(written)
        except UserError:
            # The engine reports the error in it.
            continue
        for axis in axes:
            varied = keys_of(axis)
            whose = "--grid" if axis in grid else "[sweep]"
            if path == ["sweep", axis] and axis in grid:
                raise UserError(
                    f"--set {change!r} beside --grid {axis}: the first would be ignored", hint="give one of them"
                )
            if path[: len(varied)] == varied or _holds(toml_text.parse_value(value.strip()), path, varied):
                raise UserError(
                    f"--set {change!r} would be ignored: {whose} varies {axis}",
                    hint="give one of them",
                )


def _holds(value: Any, path: list[str], varied: list[str]) -> bool:
    """Whether ``value``, set at ``path``, has something at the longer path ``varied``."""
    if varied[: len(path)] != path:
        return False
    for part in varied[len(path) :]:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


@dataclass(frozen=True)
class Origin:
    """Position of a value of ``[sweep]`` in a scenario's file."""

    file: str
    line: int
    column: int
    source: str


def origins(text: str, file: str, given: Iterable[str] = ()) -> dict[str, Origin]:
    """Positions of the values of the file's ``[sweep]``, by ``PATH=VALUE``; ``given`` axes replace the file's.

    If Python's parser refuses a file, there are none: the engine has accepted it, and reads more of
    TOML.
    """
    try:
        table = toml_text.parse(text.removeprefix("\ufeff"), file).get("sweep")
        if not isinstance(table, dict):
            return {}
        places = toml_text.locate(text.removeprefix("\ufeff"))
        found: dict[str, Origin] = {}
        for key, values in table.items():
            if not isinstance(values, list):
                continue
            path = one_spelling(key)
            if path in given:
                continue
            for i, value in enumerate(values):
                place = places[("sweep", key, i)][1]
                source = toml_text.source_line(text, place.line)
                found[f"{path}={toml_text.write_value(value)}"] = Origin(file, place.line, place.column, source)
        return found
    except (UserError, ValueError, KeyError, IndexError, RecursionError):
        return {}


def blame(
    error: ScenarioError,
    sets: Sequence[str],
    places: Mapping[str, Origin] = MappingProxyType({}),
    given: Iterable[str] | None = None,
    ranges: Iterable[str] = (),
) -> ScenarioError:
    """Rewrite the engine's error on one point of a grid in terms of the grid.

    A value of the grid reaches the engine as ``--set``. The user gave it with ``--grid`` (the axes
    ``given``; all of them when left out), or in ``[sweep]`` at one of ``places``. If the point has
    several values, all of them are named, because their combination may be the mistake.
    """
    message = str(error)
    for change in sets:
        name = error.file
        if is_of_change(name, change):
            if change in places:
                message = _at(error, places[change])
            else:
                by_option = given is None or any(change.startswith(f"{axis}=") for axis in given)
                by_range = any(change.startswith(f"{axis}=") for axis in ranges)
                whose = argument("range") if by_range else argument("grid") if by_option else "[sweep]"
                error.file = f"{whose} '{change}'"
                message = error.file + message.removeprefix(name)
            break
    if len(sets) > 1:
        message += f"\n = at the grid's point {', '.join(sets)}"
    error.args = (message,)
    return error


def _at(error: ScenarioError, origin: Origin) -> str:
    """The message of an error in a value of ``[sweep]``, in the engine's form for a value in a file."""
    hints = [line.removeprefix(" = ") for line in str(error).splitlines() if line.startswith(" = ")]
    error.file, error.line, error.column = origin.file, origin.line, origin.column
    gutter = " " * len(str(origin.line))
    return "\n".join(
        [
            f"{origin.file}:{origin.line}:{origin.column}: {error.message}",
            f"{gutter} |",
            f"{origin.line} | {origin.source}",
            f"{gutter} | {' ' * (origin.column - 1)}^",
            *(f"{gutter} = {hint}" for hint in hints),
        ]
    )


def keys_of(path: str) -> list[str]:
    """The keys of a dotted TOML key.

    Raises:
        UserError: It is none.
    """
    wrong = UserError(f"the path {path!r} is not a dotted TOML key", hint=_spelling(str(path)))
    if not isinstance(path, str):
        raise wrong
    if "\n" in path or set("=#") & set(_QUOTED.sub("", path)):
        raise wrong
    if len(path) > MAX_PATH:
        raise UserError(f"a path has {len(path):,} characters; at most {MAX_PATH:,} were expected")
    try:
        inner: Any = toml_text.parse(f"{path} = 0", "")
    except UserError:
        raise wrong from None
    parts = []
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return parts


def _spelling(path: str) -> str:
    """A hint with the correct spelling of a path, with quotation marks if its names need them."""
    names = [name.strip() for name in path.split(".")]
    if len(names) > 1 and all(names) and not set("\"'\\\n=") & set(path):
        written = ".".join(toml_text.write_key(name) for name in names)
        return f"--grid '{written}=A,B,C'" if spoken.in_command() else f"as a path: {written}"
    return "--grid flow.main.cc=reno,cubic" if spoken.in_command() else "for example flow.main.cc"


def _reject_equal(path: str, values: Sequence[Any]) -> None:
    seen: set[Any] = set()
    for value in values:
        # Values with the same text in the table would be summarised as one point, whatever their
        # type.
        shown = value if isinstance(value, str) else toml_text.write_value(value)
        names = {("means", _comparable(value)), ("shown", shown)}
        if not seen.isdisjoint(names):
            raise UserError(
                f"the grid gives {path} the value {toml_text.write_value(value)} twice; "
                "the same run would count as two observations",
                hint=f"give each value once; {argument('repeat', 'N')} runs N seeds per point",
            )
        seen |= names


def _comparable(value: Any) -> Any:
    """A key that is equal for equivalent values: 5 and 5.0, a name and its table; but not for true and 1."""
    if isinstance(value, bool):
        return ("flag", value)
    if isinstance(value, Mapping):
        if set(value) == {"kind"}:
            return _comparable(value["kind"])
        return ("table", frozenset((str(k), _comparable(v)) for k, v in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return ("list", tuple(_comparable(v) for v in value))
    return value
