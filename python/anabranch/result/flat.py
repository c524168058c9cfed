"""The figures of one run's summary under one dotted name each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.result.summary import AnySummary

PARTS = ("reordering", "transfers", "fec")
"""Parts of a flow's summary that are ``None`` if they do not apply."""

_SECTIONS = (
    ("flows", "flow"),
    ("links", "link"),
    ("groups", "group"),
    ("gateways", "gateway"),
    ("fairness", "fairness"),
)


_COPY = re.compile(r"(?P<flow>[^/]+)/[0-9]+(?P<rest>\.[^/]*)?", re.DOTALL)
"""The name of one copy of a flow, or of a figure of it. Names of flows have no slashes."""

Flat = dict[str, "float | None"]
"""Figures by dotted name."""


def flow_of_copy(name: str) -> str | None:
    """The flow that ``name`` is a copy of (``main`` for ``main/0``); ``None`` if it is no copy."""
    parts = _COPY.fullmatch(name)
    return parts["flow"] if parts and parts["rest"] is None else None


def without_copy(figure: str) -> str:
    """``flow.main.goodput_mbit_s`` for ``flow.main/0.goodput_mbit_s``; other figures unchanged."""
    parts = _COPY.fullmatch(figure)
    return f"{parts['flow']}{parts['rest'] or ''}" if parts else figure


def flatten(summary: Mapping[str, Any], *, distributions: bool = False, means: bool = False) -> Flat:
    """Every figure of a summary under one dotted name each: ``flow.main.goodput_mbit_s``.

    Args:
        summary: A run's summary.
        distributions: Also the reordering distributions, one figure per bin.
        means: Also the mean of each figure over the copies of a flow, under the flow's name: ``flow.main`` for
            ``flow.main/0``, ``flow.main/1``, …. Copies without the figure are left out of its mean.
    """
    flat: Flat = {}

    # Called for every run of a sweep: comparing the exact types of JSON values takes a third of the time.
    def walk(flat: Flat, prefix: str, table: Mapping[str, Any]) -> None:
        for key, inner in table.items():
            kind = type(inner)
            if kind is float:
                flat[f"{prefix}.{key}"] = inner
            elif kind is int:
                flat[f"{prefix}.{key}"] = float(inner)
            # A part that does not apply to a flow, such as error correction, is no figure.
            elif inner is None:
                if key not in PARTS:
                    flat[f"{prefix}.{key}"] = None
            elif issubclass(kind, dict) and (distributions or key != "reordering"):
                walk(flat, f"{prefix}.{key}", inner)

    for section, singular in _SECTIONS:
        table: Any = summary.get(section)
        if not isinstance(table, dict):
            continue
        if means and section == "flows":
            _flatten_flows(flat, table, walk)
        else:
            walk(flat, singular, table)
    return flat


def _flatten_flows(flat: Flat, flows: Mapping[str, Any], walk: Callable[[Flat, str, Mapping[str, Any]], None]) -> None:
    """The figures of all flows. If a flow has several copies, their means come first."""
    groups: dict[str, list[str]] = {}
    for name in flows:
        groups.setdefault(flow_of_copy(name) or name, []).append(name)
    for flow, names in groups.items():
        if names == [flow]:
            walk(flat, f"flow.{flow}", flows[flow])
            continue
        copies: list[Flat] = [{} for _ in names]
        for name, own in zip(names, copies, strict=True):
            walk(own, "", flows[name])
        flat.update((f"flow.{flow}{key}", value) for key, value in _means(copies).items())
        for name, own in zip(names, copies, strict=True):
            flat.update((f"flow.{name}{key}", value) for key, value in own.items())


def _means(copies: Sequence[Flat]) -> Flat:
    """The mean of each figure over the copies that have it; a count that a copy does not list is 0."""
    means: Flat = {}
    for key in dict.fromkeys(key for one in copies for key in one):
        known = [value for one in copies if (value := one.get(key, 0.0)) is not None]
        means[key] = math.fsum(known) / len(known) if known else None
    return means


def read_summary(raw: str) -> AnySummary:
    """A summary without the resolved scenario, which is two thirds of it and has no figures."""
    # Inside a JSON string a quotation mark follows a backslash, so these are keys.
    begin, end = raw.find('"resolved_scenario":'), raw.rfind(',"platform":"')
    if 0 < begin < end:
        try:
            summary: AnySummary = json.loads(raw[:begin] + raw[end + 1 :])
        except ValueError:
            pass
        else:
            if isinstance(summary.get("flows"), dict) and "digest" in summary:
                return summary
    whole: AnySummary = json.loads(raw)
    return whole
