"""The component pages, from the engine's registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reference.markdown import NOTICE, cell, code, table, value

# The heading of each kind, and the key of a scenario file that names it.
KINDS = {
    "cc": ("Congestion controls", "`cc` of a flow"),
    "queue": ("Queues", "`queue` of a link"),
    "impair": ("Impairments", "`impair` of a link"),
    "control": ("Group controllers", "`control` of a group"),
    "split": ("Splitters", "`split` of a gateway"),
    "restore": ("Restorers", "`restore` of a gateway"),
    "remedy": ("Remedies for reordering", "`transport.reordering` of a flow"),
    "fec": ("Error correction", "`fec` of a flow"),
    "reorder": ("Reordering inside a queue", "`reorder` of a queue"),
    "stack": ("Stack profiles", "`stack` of a flow"),
    "workload": ("Workloads", "`workload` of a flow"),
    "path": ("Ready paths", "`path` of a link"),
}


def by_kind(registry: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group the registry's entries by kind, keeping their order."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for entry in registry:
        kinds.setdefault(entry["kind"], []).append(entry)
    return kinds


def heading(kind: str) -> str:
    """Return a kind's heading."""
    return KINDS[kind][0] if kind in KINDS else kind


INTRODUCTION = """\
The output of `anabranch list`. `anabranch explain NAME` prints one of these entries.
"""


def index(registry: Iterable[Mapping[str, Any]]) -> str:
    """Return the page that lists all components."""
    out = [NOTICE, "# Components\n", INTRODUCTION]
    for kind, entries in by_kind(registry).items():
        # The anchor of a heading has no dots.
        rows = [(f"[`{e['name']}`]({kind}.md#{e['name'].replace('.', '')})", e["title"], e["summary"]) for e in entries]
        out += [f"## {heading(kind)}\n", table(("name", "", "description"), rows)]
    return "\n".join(out)


def page(kind: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of one kind."""
    out = [NOTICE, f"# {heading(kind)}\n"]
    if kind in KINDS:
        out.append(f"Named by {KINDS[kind][1]}.\n")
    for entry in entries:
        out += _entry(entry)
    return "\n".join(out)


def _entry(entry: Mapping[str, Any]) -> list[str]:
    out = [f"## {entry['name']}\n", f"**{entry['title']}.** {' '.join(entry['summary'].split())}\n"]
    if sources := entry.get("sources"):
        out.append("Source: " + "; ".join(_source(source) for source in sources) + ".\n")
    if parameters := entry.get("parameters"):
        head = ("parameter", "type", "default", "range", "meaning")
        out.append(table(head, [_parameter(parameter) for parameter in parameters]))
    if details := entry.get("details"):
        reasons = details.get("reasons", {})
        shown = {key: item for key, item in details.items() if key not in ("reasons", "not_modelled", "assumed")}
        if entry["kind"] == "path":
            out.append(table(("key", "value"), [(code(k), value(v)) for k, v in shown.items()]))
        else:
            rows = [(code(k), value(v), reasons.get(k, "")) for k, v in shown.items()]
            out.append(table(("", "value", "why"), rows))
        if assumed := details.get("assumed"):
            out.append("Assumed, because no source says so:\n\n" + "".join(f"- {cell(line)}\n" for line in assumed))
        if missing := details.get("not_modelled"):
            out.append("Not modelled in this version:\n\n" + "".join(f"- {cell(line)}\n" for line in missing))
    return out


def _parameter(parameter: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        code(parameter["name"]),
        _type(parameter),
        value(parameter.get("default")),
        _range(parameter),
        parameter.get("description") or "",
    )


def _source(source: Mapping[str, Any]) -> str:
    return " ".join([cell(source["id"]), ", ".join(source.get("items") or [])]).strip()


def _type(parameter: Mapping[str, Any]) -> str:
    name, units = parameter.get("type") or "", parameter.get("units")
    return f"{name}: {cell(units)}" if units else name


def _range(parameter: Mapping[str, Any]) -> str:
    minimum, maximum = parameter.get("minimum"), parameter.get("maximum")
    if minimum is None and maximum is None:
        return ""
    if maximum is None:
        return f"≥ {minimum}"
    if minimum is None:
        return f"≤ {maximum}"
    return f"{minimum} … {maximum}"
