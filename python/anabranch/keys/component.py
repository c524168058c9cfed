"""Tables of a scenario from the generated builders: only the given keys, checked on construction."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from anabranch.errors import UserError
from anabranch.text import shown, toml_text

P = ParamSpec("P")
R = TypeVar("R")

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value]"
"""A value of a scenario: quantities are text with their unit (``"15 ms"``), ratios plain numbers."""

Component: TypeAlias = "dict[str, Value]"
"""A table of a scenario: the result of a builder, and an argument of ``Scenario.link``, ``flow`` and ``set``."""

ARGUMENTS = {"from": "source", "to": "target", "exec": "execute"}
"""Arguments of keys that are reserved words in Python, or unclear there."""


class Builder(NamedTuple):
    """A builder's function.

    Attributes:
        name: Its name in messages.
        path: Position of its table in a scenario; empty if it has no particular one.
        in_list: The table is an element of a list there.
        kind: The component's name in a scenario; empty for a table without ``kind``.
        around: The ``kind`` of the table at ``path``, and the keys inside it that lead to this one.
    """

    name: str
    path: str | None
    in_list: bool = False
    kind: str | None = None
    around: tuple[str, ...] = ()


class UnknownArgumentError(UserError, TypeError):
    """A function has no such argument; the hint names the nearest one."""


def build(builder: Builder, arguments: Mapping[str, Any]) -> Component:
    """The table of the arguments that were given, by the names of their keys.

    Raises:
        BadValueError: No scenario can have it.
        UserError: A value has no TOML form.
    """
    from anabranch.keys import schema

    given = plain_entries(builder.name, arguments)
    kind: Component = {"kind": builder.kind} if builder.kind else {}
    if builder.path is None:
        return {**kind, **given}

    def placed(table: Mapping[str, Any]) -> Any:
        """The value at the path that contains the table."""
        value: Any = {**kind, **table}
        for key in reversed(builder.around[1:]):
            value = {key: value}
        if builder.around:
            value = {"kind": builder.around[0], **value}
        return [value] if builder.in_list else value

    places = schema.places(builder.path.split("."))
    if not any(schema.fits(placed(given), place) for place in places):
        # Arguments that are wrong alone; a value may also be wrong only in combination.
        wrong = [key for key in given if not any(schema.fits(placed({key: given[key]}), place) for place in places)]
        told = call(builder.name, [], {key: given[key] for key in wrong or given})
        schema.check_component(builder.path, placed(given), told, [given[key] for key in wrong])
    return {**kind, **given}


def call(function: str, positional: Sequence[Any], arguments: Mapping[str, Any]) -> str:
    """The text of a call."""
    words = [*map(shown.python, positional)]
    words += [f"{argument(key)}={shown.python(value)}" for key, value in arguments.items()]
    return f"{function}({', '.join(words)})"


def argument(key: str) -> str:
    """The argument for a key of the format."""
    import keyword
    import re

    name = ARGUMENTS.get(key, re.sub(r"\W", "_", key))
    return f"{name}_" if keyword.iskeyword(name) else name


def plain_entries(function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments, in Python's own types.

    Raises:
        UserError: One has no TOML form; the message names it.
    """
    given = {}
    for key, value in present(arguments).items():
        try:
            given[key] = toml_text.plain(value)
        except UserError as error:
            raise UserError(f"{function}({argument(key)}=…): {error.message}", hint=error.hint) from None
    return given


def present(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The given keys."""
    return {key: value for key, value in entry.items() if value is not None}


def named(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose error for an unknown argument names the probable one."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        if len(arguments) > len(positional) or not options.keys() <= set(known):
            raise _wrong_call(function, positional, arguments, options)
        return function(*arguments, **options)

    return checked


def _wrong_call(
    function: Callable[..., Any], positional: Sequence[str], arguments: Sequence[Any], options: Mapping[str, Any]
) -> UnknownArgumentError:
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    home = function.__module__.rpartition(".")[2]
    name = (
        function.__name__
        if inspect.signature(function).parameters.keys() & {"self", "cls"}
        else f"{home}.{function.__name__}"
    )
    name = function.__qualname__.partition(".")[0] if function.__name__ == "__init__" else name
    for option, value in options.items():
        if option not in parameters:
            return UnknownArgumentError(
                f'{name}({option}={shown.python(value)}): there is no argument "{option}"',
                hint=_hint(option, parameters),
            )
    free = [one for one in parameters if one not in positional and one not in options]
    extra = arguments[len(positional) :]
    written = ", ".join(f"{one}={shown.python(value)}" for one, value in zip(free, extra, strict=False))
    return UnknownArgumentError(
        f"{name}: {shown.python(extra[0])} is given without the name of its argument", hint=f"for example {written}"
    )


def _hint(option: str, parameters: Sequence[str]) -> str:
    """A hint that names the probable argument, or the argument for the probable component."""
    from anabranch.errors import nearest
    from anabranch.text.synonyms import meant, plain

    keys = {plain(key): name for key, name in ARGUMENTS.items()}
    target = meant(option) or plain(option)
    if keys.get(plain(target)) in parameters:
        return f'did you mean "{keys[plain(target)]}"?'
    for part in target.split("."):
        if part in parameters and part != target.rpartition(".")[2]:
            return f'did you mean "{part}"? It takes {target.rpartition(".")[2]}'
    for kind, name in _components():
        if plain(name) == plain(target) and kind in parameters:
            built = f"{kind}.{argument(name)}(…)"
            return f"did you mean {kind}={f'[{built}]' if kind == 'impair' else built}?"
    return nearest(option, parameters)


@functools.cache
def _components() -> list[tuple[str, str]]:
    import json

    from anabranch import _engine

    return [(item["kind"], item["name"]) for item in json.loads(_engine.registry())]
