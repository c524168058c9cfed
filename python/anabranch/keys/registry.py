"""Named items of the engine: congestion controls, queues, stacks and other parts of scenarios."""

from __future__ import annotations

import json
from typing import Any

_ALIASES = {("cc", "reno"): ["new-reno"]}
"""Names that the engine accepts but its registry does not list."""


def engine_registry() -> list[dict[str, Any]]:
    """The items of the engine's registry, each with its aliases."""
    from anabranch import _engine

    items: list[dict[str, Any]] = json.loads(_engine.registry())
    for item in items:
        more = _ALIASES.get((item["kind"], item["name"]), [])
        if more:
            item["details"] = {**item.get("details", {}), "aliases": list(dict.fromkeys([*aliases(item), *more]))}
    return items


def aliases(item: dict[str, Any]) -> list[str]:
    """The other names of an item."""
    return [str(name) for name in item.get("details", {}).get("aliases", [])]
