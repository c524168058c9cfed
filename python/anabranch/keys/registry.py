"""Named items of the engine: congestion controls, queues, stacks and other parts of scenarios."""

from __future__ import annotations

import json
from typing import Any, TypedDict

_ALIASES = {("cc", "reno"): ["new-reno"]}
"""Names that the engine accepts but its registry does not list."""


class Source(TypedDict):
    """A source of an item, and the parts of it that count."""

    id: str
    items: list[str]


class Parameter(TypedDict):
    """A parameter of an item."""

    name: str
    type: str
    units: str
    description: str
    default: Any
    minimum: Any
    maximum: Any


class Item(TypedDict):
    """Something with a name, in the form of the engine's registry."""

    kind: str
    name: str
    title: str
    summary: str
    sources: list[Source]
    parameters: list[Parameter]
    details: dict[str, Any]


def engine_registry() -> list[Item]:
    """The items of the engine's registry, each with its aliases."""
    from anabranch import _engine

    items: list[Item] = json.loads(_engine.registry())
    for item in items:
        more = _ALIASES.get((item["kind"], item["name"]), [])
        if more:
            item["details"] = {**item["details"], "aliases": list(dict.fromkeys([*aliases(item), *more]))}
    return items


def aliases(item: Item) -> list[str]:
    """The other names of an item."""
    return [str(name) for name in item["details"].get("aliases", [])]
