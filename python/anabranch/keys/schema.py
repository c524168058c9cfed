"""Checks values against the scenario format's JSON Schema where they are given.

The schema is only a first filter. If a value does not fit, the engine checks it, and its message is
shown: it names ranges, units, the nearest name, and the replacement of a removed switch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from anabranch._engine import ScenarioError
from anabranch.errors import UserError, is_of_change
from anabranch.keys.full_keys import add_hint
from anabranch.text import quantity, shown, toml_text
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.scenario import Scenario

Schema = Mapping[str, Any]

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "array": lambda v: isinstance(v, Sequence) and not isinstance(v, str),
    "object": lambda v: isinstance(v, Mapping),
    "null": lambda v: v is None,
}


class BadValueError(UserError, ScenarioError):
    """A value given from Python that is invalid in a scenario; ``file`` is the call that gave it."""

    file: str


def check(scenario: Scenario, parts: Sequence[str], value: Any, given: str | Callable[[Sequence[str]], str]) -> None:
    """Refuse ``value`` at the path ``parts`` of a scenario if no scenario can have it there.

    Args:
        scenario: The scenario that receives the value.
        parts: The keys of the dotted path.
        value: The value, in Python's own types.
        given: The call that gives it, for the message; or a function that returns it for the wrong keys.

    Raises:
        BadValueError: The engine refuses it.
    """
    _check_stack(parts, value, given)
    if any(fits(value, place) for place in places(parts)) and not _names_path(parts, value):
        return
    change = f"{'.'.join(toml_text.write_key(part) for part in parts)}={toml_text.write_value(value)}"
    error = blame(scenario, change)
    if error is None:
        return
    if isinstance(given, str):
        raise BadValueError(_with_list(_told(error), [value]), file=given)
    wrong = [key for key in value if not any(fits(value[key], place) for place in places([*parts, key]))]
    wrong = wrong or [key for key in value if key == "path"]
    is_plain = bool(wrong) and not any(isinstance(value[key], (dict, list)) for key in wrong)
    told = _with_list(_told(error, shows_path=not is_plain), [value[key] for key in wrong])
    raise BadValueError(told, file=given(wrong))


def _with_list(told: str, wrong: Sequence[Any]) -> str:
    """The message on one value in place of a list, with a suggestion of the list."""
    if len(wrong) != 1 or isinstance(wrong[0], list):
        return told
    return re.sub(
        r" = expected a list$", lambda hint: f" = did you mean [{shown.python(wrong[0])}]?{hint[0][2:]}", told
    )


def _names_path(parts: Sequence[str], value: Any) -> bool:
    """Whether a value names a ready path, whose names are not in the schema."""
    return parts[:1] == ["link"] and (parts[2:] == ["path"] or (isinstance(value, Mapping) and "path" in value))


_TRIAL = """duration = "1 s"
link.a.between = ["A", "B"]
link.a.rate = "1 Mbit/s"
flow.f.from = "A"
flow.f.to = "B"
"""
"""A complete scenario: the engine checks stack profiles only in complete ones."""


def _check_stack(parts: Sequence[str], value: Any, given: str | Callable[[Sequence[str]], str]) -> None:
    """Refuse an unknown stack profile; their names are not in the schema."""
    from anabranch.scenario import Scenario

    if list(parts[:1]) != ["flow"]:
        return
    stack = value if list(parts[2:]) == ["stack"] else value.get("stack") if isinstance(value, Mapping) else None
    if not isinstance(stack, str):
        return
    error = blame(Scenario.from_text(_TRIAL), f"flow.f.stack={toml_text.write_value(stack)}")
    if error is not None:
        raise BadValueError(_told(error, shows_path=False), file=given if isinstance(given, str) else given(["stack"]))


def check_component(path: str, value: Any, given: str, wrong: Sequence[Any] = ()) -> None:
    """Refuse a component's table that no scenario can have at ``path``; see :func:`check`.

    Args:
        path: Where the table would be.
        value: The table.
        given: The call that gives it, for the message.
        wrong: The values in it that are at fault.

    Raises:
        BadValueError: The engine refuses it.
    """
    from anabranch.scenario import Scenario

    if any(fits(value, place) for place in places(path.split("."))):
        return
    error = blame(Scenario(), f"{path}={toml_text.write_value(value)}")
    if error is not None:
        # The path is artificial, so only the expectation is kept of the message.
        raise BadValueError(_with_list(_told(error, shows_path=False), wrong), file=given)


def blame(scenario: Scenario, change: str) -> ScenarioError | None:
    """The engine's error on one change of a scenario; ``None`` if the change is not at fault.

    The engine checks changes before missing keys, so the scenario may be incomplete.
    """
    from anabranch import _engine

    try:
        _engine.resolve(
            scenario.text,
            scenario.file,
            [*scenario.sets, change],
            None,
            untrusted=scenario.untrusted,
            controls=list(scenario.controls.items()),
        )
    except ScenarioError as error:
        return add_hint(error, [change], scenario.text) if is_of_change(error.file, change) else None
    return None


def in_words_of_python(error: ScenarioError, scenario: Scenario) -> ScenarioError:
    """The engine's error, with ``--set '…'`` in its place replaced by the name in Python or in the command.

    An unknown key is followed by the complete paths that may be meant.
    """
    add_hint(error, scenario.sets, scenario.text)
    if error.file.startswith("--set '"):
        option = argument("set")
        errors = str(error).split("\n\n")
        error.args = (
            "\n\n".join(option + one.removeprefix("--set") if one.startswith("--set '") else one for one in errors),
        )
        error.file = option + error.file.removeprefix("--set")
    return error


def _told(error: ScenarioError, *, shows_path: bool = True) -> str:
    # Further errors are not about this value.
    told, *_ = str(error).split("\n\n")
    first, *others = told.removeprefix(f"{error.file}: ").splitlines()
    kept = [line for line in others if shows_path or line.startswith(" = ")]
    return "\n".join([first, *kept])


@cache
def whole() -> Schema:
    """The schema of scenario files."""
    from anabranch import _engine

    schema: Schema = json.loads(_engine.schema())
    return schema


def places(parts: Sequence[str]) -> list[Schema]:
    """The possible schemas at a path; the scenario determines which applies."""
    found: list[Schema] = [whole()]
    for part in parts:
        found = [inner for place in found for one in alternatives(place) for inner in _inside(one, part)]
    return found


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value fits ``schema``. Required keys may be missing, because they may follow, except ``kind``."""
    if "$ref" in schema and not fits(value, _definition(schema["$ref"])):
        return False
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema and not any(fits(value, one) for one in schema[alternatives]):
            return False
    return _is_of_type(value, schema) and all(test(value, schema) for test in _TESTS)


def alternatives(schema: Schema) -> Iterator[Schema]:
    """A schema, its references and its alternatives."""
    yield schema
    if "$ref" in schema:
        yield from alternatives(_definition(schema["$ref"]))
    for key in ("anyOf", "oneOf"):
        for one in schema.get(key, ()):
            yield from alternatives(one)


def _inside(schema: Schema, part: str) -> Iterator[Schema]:
    if part in schema.get("properties", {}):
        yield schema["properties"][part]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"]
    elif part.isascii() and part.isdigit() and "items" in schema:
        yield schema["items"]
    elif set(schema) <= {"description", "title", "default"}:
        # The format does not define the form.
        yield schema


def _definition(reference: str) -> Schema:
    definition: Schema = whole()["$defs"][reference.rsplit("/", 1)[-1]]
    return definition


def _is_of_type(value: Any, schema: Schema) -> bool:
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else types
    return not names or any(_TYPES[name](value) for name in names)


def _is_allowed(value: Any, schema: Schema) -> bool:
    if "const" in schema and value != schema["const"]:
        return False
    return "enum" not in schema or value in schema["enum"]


def _is_in_range(value: Any, schema: Schema) -> bool:
    if not _TYPES["number"](value):
        return True
    # NaN is in no range.
    return (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
    )


def _is_quantity(value: Any, schema: Schema) -> bool:
    if not isinstance(value, str) or "pattern" not in schema:
        return True
    if not re.search(schema["pattern"], value):
        return False
    low, high = (_compared(value, schema.get(key)) for key in ("x-minimum", "x-maximum"))
    return (low is None or low >= 0) and (high is None or high <= 0)


def _compared(one: str, other: str | None) -> int | None:
    """-1, 0 or 1 if ``one`` is less than, equal to or more than ``other``; ``None`` if they are not comparable."""
    left, right = quantity.read(one), quantity.read(other or "")
    if left is None or right is None or left.dimension != right.dimension:
        return None
    return (left.size > right.size) - (left.size < right.size)


def _has_fitting_parts(value: Any, schema: Schema) -> bool:
    if isinstance(value, Mapping):
        others = schema.get("additionalProperties", True)
        if "kind" in schema.get("required", ()) and "kind" not in value:
            return False
        for key, inner in value.items():
            place = schema.get("properties", {}).get(key, others)
            if place is False or (isinstance(place, Mapping) and not fits(inner, place)):
                return False
        return True
    if _TYPES["array"](value):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        return all(fits(inner, schema["items"]) for inner in value) if "items" in schema else True
    return True


_TESTS = (_is_allowed, _is_in_range, _is_quantity, _has_fitting_parts)
