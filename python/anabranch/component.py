"""Tables of a scenario as the generated builders make them: only what was given, checked where it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from anabranch import shown, toml_text

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value]"
"""What may stand in a scenario: quantities are text with their unit (``"15 ms"``), ratios bare numbers."""

Component: TypeAlias = "dict[str, Value]"
"""A table of a scenario: what a builder returns, and what ``Scenario.link``, ``flow`` and ``set`` take."""


class Builder(NamedTuple):
    """A builder's function.

    Attributes:
        name: What it is called, for messages.
        path: Where in a scenario its table may stand; none where that depends on the table around it, which has it
            checked.
        in_list: It is one of a list there.
        kind: The component's name in a scenario; none for a table without ``kind``.
    """

    name: str
    path: str | None
    in_list: bool = False
    kind: str | None = None


def build(builder: Builder, arguments: Mapping[str, Any]) -> Component:
    """The table of the arguments that were given, by the names of their keys.

    Raises:
        BadValueError: No scenario can have it.
        UserError: A value has no TOML form.
    """
    from anabranch import schema

    given = toml_text.plain(present(arguments))
    table: Component = {"kind": builder.kind, **given} if builder.kind else given
    if builder.path is not None:
        call = f"{builder.name}({', '.join(f'{key}={shown.python(value)}' for key, value in given.items())})"
        schema.check_component(builder.path, table, call, as_list=builder.in_list)
    return table


def present(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that were given."""
    return {key: value for key, value in entry.items() if value is not None}
