"""The status of installed controls as lines, and as metrics for Prometheus."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from anabranch.text.lines import percent


def lines(document: dict[str, Any]) -> Iterator[str]:
    """The status in words."""
    if not document["controls"]:
        yield "no control is installed; those that ship: anabranch cc list"
    for one in document["controls"]:
        yield f"{_title(one)}: {_state(one, has_systemd=document['systemd'])}"
        for scope in one["scopes"]:
            yield f"  {_scope(one, scope)}"
        yield f"  {_use(one)}"
    yield f"default of this network namespace: {document['default']}"


def _title(one: dict[str, Any]) -> str:
    return f"{one['ships_as']} ({one['name']} in the kernel)" if one["ships_as"] else str(one["name"])


def _state(one: dict[str, Any], *, has_systemd: bool) -> str:
    if not one["installed"]:
        return "loaded until `anabranch cc unload` or a restart"
    if not one["available"]:
        return f"installed, but not in the kernel; to load it: {_again(one)}"
    if one["unit"] is not None:
        return f"installed, at each start by {one['unit'].rpartition('/')[2]}"
    lacks = "its unit is missing" if has_systemd else "systemd does not run here"
    return f"installed until a restart ({lacks}); then type: {_again(one)}"


def _again(one: dict[str, Any], scopes: Sequence[dict[str, Any]] | None = None) -> str:
    words = ["anabranch", "cc", "install", one["ships_as"] or one["name"]]
    for scope in one["scopes"] if scopes is None else scopes:
        words += [f"--{scope['kind']}", *([scope["where"]] if scope["where"] else [])]
    return shlex.join(words)


def _scope(one: dict[str, Any], scope: dict[str, Any]) -> str:
    where = f"{scope['kind']} {scope['where']}".strip()
    if scope["in_effect"] is None:
        return f"{where}: unknown (needs root)"
    if not scope["in_effect"]:
        return f"{where}: NOT in effect; again: {_again(one, [scope])}"
    return f"{where}: in effect" + (f", before it {scope['former']}" if scope["former"] else "")


def _use(one: dict[str, Any]) -> str:
    count = one["connections"]
    told = f"{count} open connection{'' if count == 1 else 's'}"
    if not one["sent_bytes"]:
        return told
    share = one["retransmitted_bytes"] / one["sent_bytes"]
    return f"{told}, {percent(share)} of the octets sent were retransmissions"


def metrics(document: dict[str, Any]) -> Iterator[str]:
    """The status in Prometheus's text format."""
    controls = document["controls"]
    gauges = (
        ("available", "Whether the kernel has the control.", lambda one: int(one["available"])),
        ("installed", "Whether the control is installed.", lambda one: int(one["installed"])),
        ("connections", "Open connections of this network namespace that use the control.", lambda o: o["connections"]),
        ("open_sent_bytes", "Octets of data that the open connections have sent.", lambda one: one["sent_bytes"]),
        (
            "open_retransmitted_bytes",
            "Octets that the open connections have retransmitted.",
            lambda one: one["retransmitted_bytes"],
        ),
    )
    for name, help_text, value in gauges:
        yield from _head(name, help_text)
        for one in controls:
            yield f"anabranch_cc_{name}{_labels(control=one['name'])} {value(one)}"
    yield from _head("scope_in_effect", "Whether the scope uses the control.")
    for one in controls:
        for scope in (scope for scope in one["scopes"] if scope["in_effect"] is not None):
            labels = _labels(control=one["name"], kind=scope["kind"], where=scope["where"])
            yield f"anabranch_cc_scope_in_effect{labels} {int(scope['in_effect'])}"


def _head(name: str, help_text: str) -> Iterator[str]:
    yield f"# HELP anabranch_cc_{name} {help_text}"
    yield f"# TYPE anabranch_cc_{name} gauge"


def _labels(**values: str) -> str:
    quoted = (f'{key}="{_escaped(value)}"' for key, value in values.items())
    return "{" + ",".join(quoted) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
