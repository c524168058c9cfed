"""The scenario page: every table and key of the format, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reference.markdown import NOTICE, code, table, value

Schema = Mapping[str, Any]

INTRODUCTION = """\
A scenario is one TOML file. Every quantity carries its unit: `"100 Mbit/s"`, `"15 ms"`, `"64 KiB"`,
`"100 packets"`, `"1 bdp"`; k, M and G are decimal, Ki and Mi binary. Ratios are bare numbers. Unknown keys
are errors. A table that has only `kind` can be written as the name: `cc = "cubic"` is
`cc = { kind = "cubic" }`, and parameters go beside `kind`.

The same schema for editors: [scenario.schema.json](../schema/scenario.schema.json).
"""


def page(schema: Schema) -> str:
    """Return the page."""
    out = [NOTICE, "# Scenario files\n", INTRODUCTION, "## Top level\n", *_section(schema)]
    for name, definition in sorted(schema.get("$defs", {}).items()):
        out += [f"## {name}\n", *_section(definition)]
    return "\n".join(out)


def _section(schema: Schema) -> Iterator[str]:
    if description := schema.get("description"):
        yield f"{description.strip()}\n"
    if properties := schema.get("properties"):
        yield _keys(schema, properties)
    alternatives = schema.get("oneOf") or schema.get("anyOf")
    if alternatives:
        yield "One of:\n"
        yield "".join(f"- {_alternative(option)}\n" for option in alternatives)
        for option in alternatives:
            if len(option.get("properties", {})) > 1:
                yield f"With {_tag(option) or 'this form'}:\n"
                yield _keys(option, option["properties"])
    elif not properties:
        yield f"{type_of(schema)}\n"
        if units := schema.get("x-units"):
            yield f"Units: {units}.\n"


def _keys(schema: Schema, properties: Mapping[str, Any]) -> str:
    required = set(schema.get("required", []))
    rows = [
        (
            code(name),
            type_of(key),
            "required" if name in required else value(key.get("default")),
            key.get("description") or "",
        )
        for name, key in properties.items()
        if isinstance(key, Mapping)
    ]
    return table(("key", "type", "default", "meaning"), rows)


def _alternative(option: Schema) -> str:
    text = _tag(option) or type_of(option)
    description = " ".join((option.get("description") or "").split())
    return f"{text}: {description}" if description else text


def _tag(option: Schema) -> str:
    """Name the form of a tagged table: its key with one fixed value."""
    for name, key in option.get("properties", {}).items():
        if isinstance(key, Mapping) and "const" in key:
            return code(f'{name} = "{key["const"]}"')
    return ""


def type_of(schema: Schema) -> str:
    """Describe a value's type in words, with a link to the section of a named type."""
    if reference := schema.get("$ref"):
        name = reference.rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema or "enum" in schema:
        return ", ".join(value(item) for item in schema.get("enum", [schema.get("const")]))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            parts = [type_of(option) for option in schema[key] if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(parts))
    return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        kind = " or ".join(item for item in kind if item != "null")
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind == "object" and isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"tables of {type_of(inner)}, by name"
    return f"{schema.get('x-type', kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    parts = [f"≥ {schema[key]}" for key in ("minimum", "x-minimum") if key in schema]
    parts += [f"> {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
    parts += [f"≤ {schema[key]}" for key in ("maximum", "x-maximum") if key in schema]
    return f" ({', '.join(parts)})" if parts else ""
