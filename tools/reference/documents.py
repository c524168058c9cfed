"""The JSON documents of `diagnose` and of the gateway's `status`, from the serialized structs.

A field's name, type and meaning come from the Rust source: serde writes the fields under their own
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from anabranch.cli.result_names import UNITS

from reference.markdown import NOTICE, code, table

DIAGNOSE = ("crates/diagnose/src/report.rs", "crates/diagnose/src/path")
STATUS = ("crates/gatewayd/src/status.rs",)
ROOT = "Report"
"""The root struct of both programs."""

INTRODUCTION = """\
What programs print beside the [results of a run](results.md), name by name. A figure that does not apply is null.
`NAME` stands for a name of yours, `[]` for each entry of a list. A name that has been released keeps its meaning; there
may be more of them.

| names of | page |
| --- | --- |
| commands and their options | [Commands](cli.md) |
| scenario files: links, `path`, services, `devices`, `addresses`, `match`, `dscp` | [Scenario files](scenario.md) |
| ready paths | [Ready paths](path.md) |
| queues, impairments, services, controls, and their parameters | [Components](components.md) |
| a run's summary, its tables, a gateway's plan | [Results](results.md) |
| the gateway's configuration | [Bonding two WAN links](../guides/bonding.md) |
| captures' diagnoses, the gateway's status | this page |
"""

ABOUT_DIAGNOSE = """\
`anabranch diagnose CAPTURE --json` prints this document, and `anabranch.diagnose` returns it
([guide](../guides/diagnose.md)). `path` is empty where a connection has too little data. `--replay` adds
`connections[].replay`, and `--advise` fills `connections[].advice`; `--live` adds `live` to some remedies.
"""

ABOUT_STATUS = """\
`anabranch-gateway status FILE --json` prints this document; with `--watch`, one a second on a line
([guide](../guides/gateway-operations.md)).
"""

ADDED: dict[str, dict[str, tuple[str, str]]] = {
    "connections[].replay": {
        "seeds": ("count", "Simulated runs."),
        "goodput_mbit_s": ("table", "Goodput."),
        "rtt_min_ms": ("table", "The least round trip."),
        "rtt_median_ms": ("table", "The median."),
        "rtt_p95_ms": ("table", "The 95th percentile."),
        "retransmissions": ("table", "Retransmissions."),
    },
    "connections[].replay.NAME": {
        "capture": ("number or null", "In the capture."),
        "simulation": ("number or null", "The simulated runs' mean."),
        "low": ("number or null", "The lower end of its 95 % interval; null if all runs are alike."),
        "high": ("number or null", "The upper end."),
    },
    "connections[].advice[]": {
        "remedy": ("text", "Its name; `nothing` is the unchanged path."),
        "title": ("text", "Description."),
        "effort": ("text", "Where it has to be changed."),
        "set": ("table", "The keys of the fitted scenario that it changes."),
        "goodput_mbit_s": ("table", "Goodput with it."),
        "gain": ("table", "The relative change of goodput, run by run."),
        "rtt_ms": ("table", "Mean round trip with it."),
        "rtt_change": ("table", "The relative change of the round trip."),
        "cost_to_others": ("table", "The share of goodput that a CUBIC flow beside it loses by it."),
        "helps": ("yes or no", "Whether it helps: the gain's interval lies above 2 %, or it relieves the queue."),
        "score": ("number", "The figure by which remedies are ranked."),
        "seeds": ("count", "Simulated runs."),
    },
    "connections[].advice[].NAME": {
        "mean": ("number", "The mean."),
        "low": ("number or null", "The lower end of its 95 % interval; null if all runs are alike."),
        "high": ("number or null", "The upper end."),
    },
}
"""The outputs of `--replay` and `--advise`: unit and meaning of each name."""

_STRUCT = re.compile(r"pub struct (\w+) \{\n(.*?)\n\}", re.DOTALL)
_COUNTERS = re.compile(r"\n    (?:///[^\n]*\n    )*(\w+) \{\n((?:\s+(?:///[^\n]*|\w+,)\n)+)    \}")
_FIELD = re.compile(r"((?:\s*///[^\n]*\n)*)((?:\s*#\[[^\n]*\n)*)\s*(?:pub )?(\w+)(?:: ([^\n]+))?,(?:\n|$)")
_WORDS = {"bool": "yes or no", "String": "text", "&'static str": "text", "f64": "number", "Seen": "text"}


HEAD = ("key", "unit", "meaning")


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    kind: str
    meaning: str
    flat: bool


def page(root: Path) -> str:
    """Return the page."""
    out = [NOTICE, "# JSON documents\n", INTRODUCTION]
    for title, about, places in (
        ("Diagnosis of a capture", ABOUT_DIAGNOSE, DIAGNOSE),
        ("Status of a gateway", ABOUT_STATUS, STATUS),
    ):
        out += [f"## {title}\n", about]
        for paths, fields in sections(structs(root, places)):
            first, *further = paths
            out.append(f"### {first or 'The document'}\n")
            if further:
                out.append(f"Also of {', '.join(code(path) for path in further)}.\n")
            out.append(table(HEAD, [(code(f.name), _unit(f), f.meaning) for f in fields]))
        if places == DIAGNOSE:
            for path, names in ADDED.items():
                out.append(f"### {path}\n")
                out.append(table(HEAD, [(code(name), *what) for name, what in names.items()]))
    return "\n".join(out)


def structs(root: Path, places: tuple[str, ...]) -> dict[str, list[Field]]:
    """Return the fields of every public struct in these files, by its name."""
    files = [file for place in places for file in _files(root / place)]
    text = "\n".join(file.read_text("utf-8") for file in files)
    found = {name: _fields(body) for name, body in _STRUCT.findall(text)}
    return found | {name: _fields(body) for name, body in _COUNTERS.findall(text)}


def sections(known: dict[str, list[Field]]) -> Iterator[tuple[list[str], list[Field]]]:
    """Yield every struct of the document: the paths to it, and its fields."""
    paths: dict[str, list[str]] = {}
    _walk(known, ROOT, "", paths)
    for name, places in paths.items():
        yield places, _unfolded(known, name)


def _walk(known: dict[str, list[Field]], name: str, path: str, paths: dict[str, list[str]]) -> None:
    seen = name in paths
    paths.setdefault(name, []).append(path)
    if seen:
        return
    for field in _unfolded(known, name):
        inner, suffix = _inner(field.kind)
        if known.get(inner):
            _walk(known, inner, f"{path}.{field.name}{suffix}".removeprefix("."), paths)


def _unfolded(known: dict[str, list[Field]], name: str) -> list[Field]:
    fields = []
    for field in known[name]:
        fields += _unfolded(known, _inner(field.kind)[0]) if field.flat else [field]
    return fields


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("*.rs")) if place.is_dir() else [place]


def _fields(body: str) -> list[Field]:
    fields = []
    for about, attributes, name, kind in _FIELD.findall(f"{body}\n"):
        meaning = " ".join(line.strip().removeprefix("///").strip() for line in about.splitlines())
        left_out = " Left out where it is empty." if "skip_serializing_if" in attributes else ""
        text = re.sub(r"`None`", "`null`", meaning) + left_out
        fields.append(Field(name, kind or "u64", text, "serde(flatten)" in attributes))
    return fields


def _inner(kind: str) -> tuple[str, str]:
    """Return the type within a list, table or option, and the end of its path."""
    if (one := re.fullmatch(r"(?:Option|Box)<(.*)>", kind)) is not None:
        return _inner(one[1])
    if (one := re.fullmatch(r"Vec<(.*)>", kind)) is not None:
        inner, suffix = _inner(one[1])
        return inner, f"[]{suffix}"
    if (one := re.fullmatch(r"BTreeMap<[^,]*, (.*)>", kind)) is not None:
        inner, suffix = _inner(one[1])
        return inner, f".NAME{suffix}"
    return kind, ""


def _unit(field: Field) -> str:
    if (one := re.fullmatch(r"Option<(.*)>", field.kind)) is not None:
        unit = _unit(field._replace(kind=one[1]))
        return f"{unit} or null"
    inner, suffix = _inner(field.kind)
    if suffix.startswith("[]"):
        return "list"
    if suffix:
        return "table"
    if inner in _WORDS and inner != "f64":
        return _WORDS[inner]
    if inner in ("f64", "u64", "u32", "u16", "i64", "usize", "Estimate"):
        of_name = next((unit for ending, unit in UNITS.items() if field.name.endswith(ending)), None)
        return of_name or ("number" if inner == "f64" else "estimate" if inner == "Estimate" else "count")
    return "table"
