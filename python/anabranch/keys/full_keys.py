"""Completion of short paths: ``flow.main.cc`` for ``cc`` in ``--set cc=reno``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError, is_of_change
from anabranch.text import toml_text

if TYPE_CHECKING:
    from anabranch._engine import ScenarioError

TABLES = ("link", "group", "gateway", "host", "flow")
"""Tables of a scenario that contain named tables."""
_MOST = 4
"""Paths in a message."""
_OPENED = ("transport",)
"""Tables whose keys are suggested although the scenario does not have them."""


def add_hint(error: ScenarioError, changes: Sequence[str], text: str) -> ScenarioError:
    """Add the possible complete paths to the engine's error for an unknown key.

    Args:
        error: The error.
        changes: The changes, as ``PATH=VALUE``.
        text: The scenario's text.
    """
    change = next((one for one in changes if is_of_change(error.file, one)), None)
    hint = hint_for(change, error.message, str(error), text) if change is not None else None
    if hint is not None:
        first, *others = str(error).split("\n\n")
        indent = " " * (len(first.splitlines()[-1]) - len(first.splitlines()[-1].lstrip()))
        error.args = ("\n\n".join([f"{first}\n{indent}= {hint}", *others]),)
    return error


def hint_for(change: str, message: str, whole: str, text: str) -> str | None:
    """A hint for an error on a change; ``None`` if none is needed, or no path is similar.

    Args:
        change: The change, as ``PATH=VALUE``.
        message: The error's first line.
        whole: The whole error.
        text: The scenario's text.
    """
    from anabranch.keys import grid

    try:
        keys = grid.keys_of(change.partition("=")[0])
        document = toml_text.parse(text.removeprefix("\ufeff"), "")
    except UserError:
        return None
    is_unknown = message.startswith("unknown key") and "did you mean" not in whole
    # `flow.cc=reno` makes a flow called `cc`.
    is_without_name = len(keys) == 2 and keys[0] in TABLES and "expected a table" in whole
    if not (is_unknown or is_without_name):
        return None
    found, form = full_keys(keys, document), ""
    if not found:
        found, form = _new_component(keys[-1], document)
    if not found:
        return None
    shown = [f"`{one}`" for one in found[:_MOST]]
    if len(found) > _MOST:
        shown.append("…")
    return f"did you mean {'one of ' if len(found) > 1 else ''}{', '.join(shown)}{form}?"


def full_keys(keys: Sequence[str], document: Mapping[str, Any]) -> list[str]:
    """The complete paths that ``keys`` may mean in a scenario, the likeliest first."""
    from anabranch.text.synonyms import meant

    every = [path for path, _ in _paths(document)]
    found = _ending_with(keys, every)
    target = meant(keys[-1])
    if not found and target is not None:
        found = _ending_with([*keys[:-1], *target.split(".")], every) or _of_component(target, document)
    if not found and len(keys) > 1:
        # `flow.main.loss`: loss is a key of a link.
        return full_keys(keys[-1:], document)
    least = min(map(len, found), default=0)
    return [".".join(map(toml_text.write_key, path)) for path in found if len(path) == least]


def _ending_with(keys: Sequence[str], every: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The paths that end with the last key and contain the other keys before it, in this order."""
    found = []
    for path in every:
        left = iter(path[:-1])
        if path[-1] == keys[-1] and all(key in left for key in keys[:-1]):
            found.append(path)
    return found


def _of_component(name: str, document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The first parameter of each component of this kind that the scenario has."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for path, parent in _paths(document):
        if isinstance(parent, Mapping) and parent.get("kind") == name:
            found.setdefault(path[:-1], path)
    return list(found.values())


def _new_component(word: str, document: Mapping[str, Any]) -> tuple[list[str], str]:
    """Possible places of an impairment that the scenario does not have, and its text."""
    import json

    from anabranch import _engine
    from anabranch.text.synonyms import meant

    name = meant(word) or word
    known = (item for item in json.loads(_engine.registry()) if (item["kind"], item["name"]) == ("impair", name))
    item = next(known, None)
    if item is None:
        return [], ""
    parameters = "".join(f", {one['name']} = …" for one in item["parameters"][:1])
    return full_keys(["impair"], document), f' as `[{{ kind = "{name}"{parameters} }}]`'


def _paths(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every possible path in a scenario's tables, and the table that contains it."""
    from anabranch.keys import schema

    for table in TABLES:
        for name, entry in (document.get(table) or {}).items():
            for place in schema.places([table, name]):
                yield from _inside(place, entry, (table, name))


def _inside(place: Mapping[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    from anabranch.keys import schema

    for one in schema.alternatives(place):
        kinds = one.get("properties", {}).get("kind", {}).get("enum")
        own = value.get("kind") if isinstance(value, Mapping) else value
        if kinds is not None and own not in kinds:
            continue
        for key, inner in one.get("properties", {}).items():
            if key == "kind":
                continue
            yield (*path, key), value
            child = value.get(key) if isinstance(value, Mapping) else None
            if child is not None or key in _OPENED:
                yield from _inside(inner, child, (*path, key))
        if "items" in one and isinstance(value, list):
            for number, child in enumerate(value):
                yield from _inside(one["items"], child, (*path, str(number)))
