"""The axes of a grid: dotted paths in one spelling, values each once, and whose mistake an error is."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch import toml_text
from anabranch._engine import ScenarioError
from anabranch.errors import UserError

MAX_PATH = 4096
"""Characters of a path."""

MAX_POINTS = 1_000_000
"""Runs in one sweep. More is a mistake in the grid."""

MAX_RESOLVED = 10_000
"""Up to so many points every one is checked before the first run; beyond, every value of every axis."""


_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def axis_path(path: str) -> str:
    """``path`` in its one spelling: ``flow."main".cc`` is ``flow.main.cc``.

    Raises:
        UserError: It is no dotted TOML key, or nothing that a sweep may vary.
    """
    parts = _parts(path)
    if parts[0] == "seed":
        raise UserError("a grid does not vary seed", hint="--repeat N runs N seeds from the scenario's seed on")
    if parts[0] == "sweep":
        raise UserError(f"a grid does not vary {path.strip()}: a sweep does not vary itself")
    return ".".join(toml_text.write_key(part) for part in parts)


def one_spelling(path: str) -> str:
    """``path`` as :func:`axis_path` writes it, whatever it leads to.

    Raises:
        UserError: It is no dotted TOML key.
    """
    return ".".join(toml_text.write_key(part) for part in _parts(path))


def axes_of(grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The axes of one grid, each under its one spelling, in order.

    Raises:
        UserError: A path is wrong or stands there twice, or an axis has no value or equal values.
    """
    axes: dict[str, Sequence[Any]] = {}
    count = math.prod(len(values) for values in grid.values())
    if count > MAX_POINTS:
        raise UserError(f"the grid has {count:,} points; at most {MAX_POINTS:,} were expected")
    for written, values in grid.items():
        path = axis_path(written)
        if path in axes:
            raise UserError(f"the grid gives {path} twice", hint=f"give its values together: --grid {path}=A,B,C")
        if not values:
            raise UserError(f"the grid gives no value for {path}", hint=f"--grid {path}=A,B,C")
        _reject_equal(path, values)
        axes[path] = values
    return axes


def sets_of(axes: Mapping[str, Sequence[Any]], values: Sequence[Any]) -> list[str]:
    """One point's values as ``PATH=VALUE``."""
    return [f"{path}={toml_text.write_value(value)}" for path, value in zip(axes, values, strict=True)]


def points_to_check(axes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """The points to resolve before the first run: all of them, or few that hold every value of every axis."""
    if math.prod(len(v) for v in axes.values()) <= MAX_RESOLVED:
        yield from itertools.product(*axes.values())
        return
    for i in range(max(len(v) for v in axes.values())):
        yield tuple(v[min(i, len(v) - 1)] for v in axes.values())


def blame(error: ScenarioError, sets: Sequence[str]) -> ScenarioError:
    """The engine's error on one point of a grid, told in the words of the grid.

    A value of the grid reaches the engine as ``--set``; the user gave it with ``--grid``. Where the point has more
    than one value, all of them are named: a mistake may lie in their combination.
    """
    message = str(error)
    for change in sets:
        name = f"--set '{change}'"
        if error.file == name:
            error.file = f"--grid '{change}'"
            message = error.file + message.removeprefix(name)
            break
    if len(sets) > 1:
        message += f"\n = at the grid's point {', '.join(sets)}"
    error.args = (message,)
    return error


def _parts(path: str) -> list[str]:
    """The keys of a dotted TOML key."""
    wrong = UserError(f"the grid's path {path!r} is not a dotted TOML key", hint="--grid flow.main.cc=reno,cubic")
    if "\n" in path or set("=#") & set(_QUOTED.sub("", path)):
        raise wrong
    if len(path) > MAX_PATH:
        raise UserError(f"a path of the grid has {len(path):,} characters; at most {MAX_PATH:,} were expected")
    try:
        inner: Any = toml_text.parse(f"{path} = 0", "")
    except UserError:
        raise wrong from None
    parts = []
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return parts


def _reject_equal(path: str, values: Sequence[Any]) -> None:
    seen: set[Any] = set()
    for value in values:
        # What the table shows alike would be summarised as one point, whatever its type.
        shown = value if isinstance(value, str) else toml_text.write_value(value)
        names = {("means", _comparable(value)), ("shown", shown)}
        if not seen.isdisjoint(names):
            raise UserError(
                f"the grid gives {path} the value {toml_text.write_value(value)} twice; "
                "the same run would count as two observations",
                hint="give each value once; --repeat N runs N seeds per point",
            )
        seen |= names


def _comparable(value: Any) -> Any:
    """Equal, and hashed alike, for values that mean the same: 5 and 5.0, a name and its table; not true and 1."""
    if isinstance(value, bool):
        return ("flag", value)
    if isinstance(value, Mapping):
        if set(value) == {"kind"}:
            return _comparable(value["kind"])
        return ("table", frozenset((str(k), _comparable(v)) for k, v in value.items()))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return ("list", tuple(_comparable(v) for v in value))
    return value
