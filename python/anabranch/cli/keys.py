"""Keys of the scenario format, read from its schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from anabranch.keys.registry import Item

_PLACES = {
    "": "the top level of a scenario",
    "At": "[[at]]",
    "Link": "[link.NAME]",
    "OneWay": "`forward` or `reverse` of a link or a group",
    "Group": "[group.NAME]",
    "Gateway": "[gateway.NAME]",
    "Host": "[host.NAME]",
    "Flow": "[flow.NAME]",
    "Overrides": "`transport` of a flow",
    "DelayedAckTable": "`delayed_ack` in `transport` of a flow",
}
"""Where a scenario file has the tables of the schema."""

TRANSPORT = "Overrides"
"""The table of the stack's switches."""


@dataclass(frozen=True)
class Key:
    """One key in one table.

    Attributes:
        name: The key.
        table: The schema's name of the table.
        place: The table in a scenario file.
        value_type: The type of its value, in words.
        default: The value of a key that the file omits; ``None`` if there is no default, or the stack sets it.
        meaning: Its description.
    """

    name: str
    table: str
    place: str
    value_type: str
    default: Any
    meaning: str


@cache
def schema() -> Mapping[str, Any]:
    """The schema of scenario files, cached: an explanation queries it for every key, and making it takes 20 ms."""
    from anabranch import _engine

    document: Mapping[str, Any] = json.loads(_engine.schema())
    return document


def keys(document: Mapping[str, Any]) -> Iterator[Key]:
    """Every key of every table, without keys of components: :mod:`anabranch.cli.explain` lists them as parameters."""
    definitions: Mapping[str, Any] = document["$defs"]
    for table, place in _PLACES.items():
        found = document if not table else definitions.get(table, {})
        for name, key in found.get("properties", {}).items():
            if isinstance(key, Mapping):
                meaning = " ".join(str(_said(key, definitions)).split())
                yield Key(name, table, place, value_type(key, definitions), key.get("default"), meaning)


def components(document: Mapping[str, Any]) -> Iterator[Item]:
    """The values of ``kind`` that the schema has and the registry does not, in the registry's form."""
    definitions: Mapping[str, Any] = document["$defs"]
    for table in ("service", "delay"):
        for form in definitions.get(table, {}).get("anyOf", []):
            own = dict(form.get("properties", {}))
            for name in own.pop("kind", {}).get("enum", []):
                needed = form.get("required", [])
                yield {
                    "kind": table,
                    "name": name,
                    "title": f"`{table}` of a link",
                    "summary": form.get("description", ""),
                    "sources": [],
                    "parameters": [
                        {
                            "name": key,
                            "type": value_type(value, definitions),
                            "units": "",
                            "default": "required" if key in needed else value.get("default"),
                            "description": _said(value, definitions),
                            "minimum": None,
                            "maximum": None,
                        }
                        for key, value in own.items()
                    ],
                    "details": {},
                }


def value_type(key: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """The type of a value, in words."""
    key = _resolved(key, definitions)
    if "const" in key:
        return json.dumps(key["const"])
    if "enum" in key:
        return " | ".join(json.dumps(word) for word in key["enum"])
    forms = [form for word in ("anyOf", "oneOf") for form in key.get(word, [])]
    if forms:
        return _any_of(value_type(form, definitions) for form in forms if form.get("type") != "null")
    if "x-type" in key:
        units = f" ({key['x-units']})" if "x-units" in key else ""
        return f"{key['x-type']}{units}"
    plain = key.get("type", "value")
    words = [plain] if isinstance(plain, str) else [word for word in plain if word != "null"]
    names = {"string": "text", "object": "table", "array": "list", "integer": "whole number"}
    return " or ".join(names.get(word, word) for word in words)


def _any_of(forms: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(forms))


def _resolved(key: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = str(key.get("$ref", ""))
    found: Mapping[str, Any] = definitions.get(reference.removeprefix("#/$defs/"), key) if reference else key
    return found


def _said(key: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    return str(key.get("description") or _resolved(key, definitions).get("description") or "")
