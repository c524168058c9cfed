"""The keys in which scenarios differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch.text import toml_text

ABSENT = "–"
_OWN = ("title", "seed", "sweep")
"""Keys that do not count as differences."""


def differing(scenarios: Sequence[Mapping[str, Any]], without: Sequence[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """Dotted path and each scenario's value, for every key in which not all are equal.

    If components differ in kind, only the kind is named: all their parameters differ.

    Args:
        scenarios: With every default written out; an empty one gives no result.
        without: Paths that a sweep varies.
    """
    if not all(scenarios):
        return []
    found = dict(_walk((), [_one_place(scenario) for scenario in scenarios]))
    return [(path, values) for path, values in found.items() if not any(_below(path, axis) for axis in without)]


def _below(path: str, axis: str) -> bool:
    return path == axis or path.startswith(f"{axis}.")


def _one_place(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Each key in one place: on the link if both directions share its value, otherwise in its direction."""
    whole = {key: value for key, value in scenario.items() if key not in _OWN}
    links = whole.get("link")
    if isinstance(links, Mapping):
        whole["link"] = {name: _link(link) if isinstance(link, Mapping) else link for name, link in links.items()}
    return whole


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    forward, reverse = link.get("forward"), link.get("reverse")
    if not isinstance(forward, Mapping) or not isinstance(reverse, Mapping):
        return dict(link)
    shared = {key: value for key, value in forward.items() if reverse.get(key) == value}
    own = {
        name: {key: value for key, value in direction.items() if key not in shared}
        for name, direction in (("forward", forward), ("reverse", reverse))
    }
    directed = {*forward, *reverse, "forward", "reverse"}
    return {**{key: value for key, value in link.items() if key not in directed}, **shared, **own}


def _walk(path: tuple[str, ...], values: Sequence[Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if all(value == values[0] for value in values[1:]):
        return
    if all(isinstance(value, Mapping) for value in values):
        kinds = [value.get("kind") for value in values]
        keys = ["kind"] if len(set(map(str, kinds))) > 1 else dict.fromkeys(key for value in values for key in value)
        for key in keys:
            yield from _walk((*path, key), [value.get(key) for value in values])
    elif all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:
        for i, inner in enumerate(zip(*values, strict=True)):
            yield from _walk((*path, str(i)), inner)
    else:
        yield ".".join(map(toml_text.write_key, path)), tuple(map(_text, values))


def _text(value: Any) -> str:
    if value is None:
        return ABSENT
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
