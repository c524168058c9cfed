"""Dotted paths of scenario files, as ``--set`` takes them, and the keys or component that each means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.cli import keys
from anabranch.cli.keys import Key
from anabranch.errors import UserError, nearest
from anabranch.keys.grid import keys_of
from anabranch.keys.registry import Item

_HEADS = {"link": "Link", "group": "Group", "gateway": "Gateway", "host": "Host", "flow": "Flow", "at": "At"}
"""Tables at the top level of a file."""
_TABLES = {"forward": "OneWay", "reverse": "OneWay", "transport": keys.TRANSPORT, "delayed_ack": "DelayedAckTable"}
"""Tables below them."""
_KINDS = {"reordering": "remedy"}
"""Kinds of components that differ from their key."""

_Level = Mapping[str, Sequence[Key]]


def resolve(path: str, items: Sequence[Item], known: Mapping[str, Sequence[Key]]) -> list[Key] | Item:
    """The keys that a path leads to, or the component.

    Names of links, flows and other tables are optional: ``link.rate`` and ``link.bottleneck.rate``
    are equivalent. A component may precede its parameter: ``flow.cc.cubic.c``.

    Args:
        path: The path.
        items: All components.
        known: Every key of the format and every parameter, by name.

    Raises:
        UserError: No key has this path.
    """
    try:
        head, *rest = keys_of(path)
    except UserError:
        raise UserError(f"{path!r} is no dotted TOML key", hint="anabranch explain link.rate") from None
    every = [key for found in known.values() for key in found]
    level = _table(every, "")
    if head not in level:
        raise UserError(f'a scenario has no key "{head}"', hint=nearest(head, level))
    found: list[Key] | Item = list(level[head])
    level, may_name, where = _table(every, _HEADS.get(head, "–")), head in _HEADS, head
    kind = ""
    for place, part in enumerate(rest):
        component = next((item for item in items if kind == item["kind"] and part == item["name"]), None)
        if component is not None:
            found = component
            level, kind = _parameters(every, kind, component["name"]), ""
        elif part in level:
            found = list(level[part])
            kind = _KINDS.get(part, part)
            level = _table(every, _TABLES[part]) if part in _TABLES else _parameters(every, kind)
            may_name = False
        elif may_name and place + 1 < len(rest):
            may_name = False
        elif not (part.isascii() and part.isdigit()):
            names = [*level, *(item["name"] for item in items if item["kind"] == kind)]
            raise UserError(f'"{path}": `{where}` has no key "{part}"', hint=nearest(part, names))
        where = part
    return found


def _table(every: Sequence[Key], table: str) -> _Level:
    return {key.name: [key] for key in every if key.table == table}


def _parameters(every: Sequence[Key], kind: str, component: str = "") -> _Level:
    """The parameters of a kind of components, or of one of them."""
    found: dict[str, list[Key]] = {}
    for key in every:
        if key.table == kind and component in ("", key.place.partition(" ")[0]):
            found.setdefault(key.name, []).append(key)
    return found
