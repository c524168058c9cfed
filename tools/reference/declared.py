"""Names of results: keys of a run's summary, columns of its tables, keys of a gateway's plan.

The engine declares summary and tables: each key is a field of a Rust struct, with its meaning as
the doc comment. The plan is a document of Python; `plan.toml` has its meanings.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anabranch._engine as engine
from anabranch.gateway import document
from anabranch.result import measure_names
from anabranch.result.result import RETRANSMISSIONS
from anabranch.text import toml_text

Schema = Mapping[str, Any]

FILE = "python/anabranch/result/names.json"
PLAN = Path(__file__).with_name("plan.toml")
BOTH, SIMULATOR = "both", "simulator"

UNITS = measure_names.UNITS | dict.fromkeys(("_share", "_ratio", "_rate"), "ratio (0‥1)")
"""The unit that the end of a name indicates."""

PLAN_PARTS: tuple[tuple[str, type], ...] = (
    ("plan", document.PlanDocument),
    ("plan.paths.NAME", document.PlanPath),
    ("plan.paths.NAME.DIRECTION", document.PlanSide),
    ("plan.directions.DIRECTION", document.PlanDirection),
    ("plan.directions.DIRECTION.one_flow, many_flows", document.PlanComparison),
    ("together, alone.NAME", document.PlanGoodput),
    ("together.response_ms, alone.NAME.response_ms", document.PlanResponse),
    ("failover.NAME", document.PlanFailover),
    ("plan.directions.DIRECTION.classes.NAME, no_class", document.PlanClass),
    ("classes.NAME.call, no_class.call", document.PlanCall),
    ("classes.NAME.failover.NAME, no_class.failover.NAME", document.PlanCallFailover),
    ("A figure of a plan", document.PlanFigure),
)
"""The parts of a plan's document: their titles, and the typed dictionaries."""

_FORMS = {"integer": "count", "number": "number", "string": "text", "boolean": "yes or no", "object": "table"}
_WORDS = {int: "count", float: "number", str: "text", bool: "yes or no"}
_KINDS = {"small_count": "count", "flag": "yes or no"}


class Key(NamedTuple):
    """A key or a column.

    Attributes:
        form: Of its value: text, count, number, yes or no, table, a list.
        unit: Its unit, or the form if it has no unit.
        meaning: Its description.
        engine: The engine that has it.
    """

    form: str
    unit: str
    meaning: str
    engine: str


class Part(NamedTuple):
    """A table of a document, or of a run: its path or name, its description, its keys."""

    title: str
    about: str
    keys: dict[str, Key]


@cache
def definitions() -> Mapping[str, Schema]:
    """The schema of each struct of the summary, by its name.

    Raises:
        SystemExit: The engine was built without the live engine, whose structs belong to the summary.
    """
    found: Mapping[str, Schema] = json.loads(engine.results())["definitions"]
    if "LiveSummary" not in found:
        raise SystemExit(
            "tools/generate.py: this engine has no live engine, which declares part of a summary; use Linux"
        )
    return found


def summary() -> list[Part]:
    """Every part of a run's summary, under the first path to it."""
    paths: dict[str, list[str]] = {}
    for title, name in _walk("Summary", "Summary"):
        paths.setdefault(name, []).append(title)
    return [_part(name, *titles) for name, titles in paths.items()]


def tables() -> list[Part]:
    """The tables of a run, without :data:`RETRANSMISSIONS`, which only :meth:`RunResult.why` reads."""
    found = []
    for table in json.loads(engine.results())["tables"]:
        if table["name"] == RETRANSMISSIONS:
            continue
        keys = {}
        for column in table["columns"]:
            form = _KINDS.get(column["kind"], column["kind"])
            maker = column["engine"] or table["engine"]
            keys[column["name"]] = key_of(column["name"], form, column["meaning"], column["unit"], maker)
        found.append(Part(table["name"], " ".join(table["about"].split()), keys))
    return found


def plan() -> list[Part]:
    """Every part of a plan.

    Raises:
        SystemExit: A key has no meaning, or a meaning no key.
    """
    known = toml_text.parse(PLAN.read_text("utf-8"), PLAN.name)
    return [plan_part(title, kind, known.get(kind.__name__, {})) for title, kind in PLAN_PARTS]


def plan_part(title: str, kind: type, told: Mapping[str, Any]) -> Part:
    """A part of a plan.

    Raises:
        SystemExit: A key has no meaning, or a meaning no key.
    """
    hints = typing.get_type_hints(kind)
    if missing := sorted(set(hints) - set(told)):
        raise SystemExit(f"{PLAN.name}: [{kind.__name__}] does not say what {', '.join(missing)} means")
    if unknown := sorted(set(told) - set(hints)):
        raise SystemExit(f"{PLAN.name}: [{kind.__name__}] has {', '.join(unknown)}, and the plan has not")
    keys = {}
    for name, hint in hints.items():
        given = told[name] if isinstance(told[name], dict) else {"meaning": told[name]}
        keys[name] = key_of(name, _form_of_hint(hint), given["meaning"], given.get("unit"), SIMULATOR)
    return Part(title, "", keys)


def file() -> str:
    """The text of the file that the package reads, with one key a line."""
    sections = []
    for name, parts in (("summary", summary()), ("tables", tables()), ("plan", plan())):
        texts = []
        for part in parts:
            keys = [f"    {json.dumps(name)}: {_line(key._asdict())}" for name, key in part.keys.items()]
            head = f'"title": {_line(part.title)}, "about": {_line(part.about)}, "keys": {{'
            texts.append(f"  {{{head}\n" + ",\n".join(keys) + "\n  }}")
        sections.append(f' "{name}": [\n' + ",\n".join(texts) + "\n ]")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def key_of(name: str, form: str, meaning: str, unit: str | None, maker: str | None) -> Key:
    """A key, whose unit is that of its name's ending if none is stated."""
    if unit is None and form in ("count", "number"):
        unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), None)
    return Key(form, form if unit is None else unit, " ".join(meaning.split()).removesuffix("."), maker or BOTH)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _part(name: str, title: str, *further: str) -> Part:
    schema = definitions()[name]
    keys = {}
    for key, field in schema["properties"].items():
        maker = field.get("engine") or schema.get("engine")
        keys[key] = key_of(key, _form(field), field.get("description", ""), field.get("unit"), maker)
    about = [schema.get("description", ""), f"Also of {', '.join(f'`{path}`' for path in further)}." if further else ""]
    return Part(title, " ".join(" ".join(about).split()), keys)


def _walk(title: str, name: str) -> Iterator[tuple[str, str]]:
    yield title, name
    for key, field in definitions()[name]["properties"].items():
        for path, inner in _inside(key, field):
            yield from _walk(path if title == "Summary" else f"{title}.{path}", inner)


def _inside(path: str, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the structs in a value, and the path to each."""
    if "$ref" in schema:
        yield path, struct_of(schema)
    for one in schema.get("anyOf", ()):
        yield from _inside(path, one)
    if (inner := entry_of(schema)) is not None:
        yield from _inside(f"{path}.DIRECTION" if path.endswith(".NAME") else f"{path}.NAME", inner)
    if isinstance(inner := schema.get("items"), dict):
        yield from _inside(f"{path}[]", inner)


def struct_of(schema: Schema) -> str:
    """The name of the struct that a schema refers to."""
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def entry_of(schema: Schema) -> Schema | None:
    """The schema of the entries of a table by name or number; ``None`` if it is no such table, or has any entries."""
    for found in (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")):
        if isinstance(found, dict):
            return found
    return None


def types_of(schema: Schema) -> list[str]:
    """The JSON types of a value, without null; empty for a struct."""
    given = schema.get("type", [])
    return [one for one in ([given] if isinstance(given, str) else given) if one != "null"]


def _form(schema: Schema) -> str:
    found = types_of(schema)
    if found == ["array"]:
        return f"list of {_form(schema['items'])}"
    return _FORMS[found[0]] if found else "table"


def _form_of_hint(hint: Any) -> str:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(_form_of_hint(one) for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is list:
        return f"list of {_form_of_hint(typing.get_args(hint)[0])}"
    return _WORDS.get(hint, "table")
