"""The reference shows what the registry and the schema say, and notices files out of date."""

from pathlib import Path

from reference import components, files, markdown, scenario

REGISTRY = [
    {
        "kind": "cc",
        "name": "cubic",
        "title": "CUBIC",
        "summary": "A cubic\nof time.",
        "sources": [{"id": "RFC 9438", "items": ["§4.2", "§4.3"]}],
        "parameters": [
            {
                "name": "beta",
                "type": "number",
                "default": 0.7,
                "description": "Kept | after loss",
                "minimum": 0.0,
                "maximum": 1.0,
            }
        ],
        "details": {},
    },
    {
        "kind": "stack",
        "name": "rfc",
        "title": "By the book",
        "summary": "As standardised.",
        "sources": [],
        "parameters": [],
        "details": {"sack": True, "recovery": "rfc6675"},
    },
]

SCHEMA = {
    "properties": {
        "title": {"type": "string", "description": "What it is."},
        "link": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Link"}},
    },
    "required": ["title"],
    "$defs": {
        "Link": {
            "description": "A link.",
            "properties": {
                "up": {"type": "boolean", "default": True},
                "queue": {"anyOf": [{"$ref": "#/$defs/Queue"}, {"type": "null"}]},
            },
        },
        "Queue": {
            "oneOf": [
                {
                    "description": "Drops the last.",
                    "properties": {
                        "kind": {"const": "drop-tail"},
                        "limit": {"type": "integer", "minimum": 1},
                    },
                },
                {"type": "string"},
            ]
        },
    },
}


def test_a_component_shows_source_parameters_and_bounds() -> None:
    page = components.page("cc", components.by_kind(REGISTRY)["cc"])
    assert "# Congestion controls" in page
    assert "**CUBIC.** A cubic of time." in page
    assert "Source: RFC 9438 §4.2, §4.3." in page
    assert "| `beta` | number | `0.7` | 0.0 … 1.0 | Kept \\| after loss |" in page


def test_a_profile_shows_every_switch() -> None:
    page = components.page("stack", components.by_kind(REGISTRY)["stack"])
    assert "| `sack` | `true` |" in page
    assert '| `recovery` | `"rfc6675"` |' in page


def test_the_index_links_every_component() -> None:
    page = components.index(REGISTRY)
    assert "[`cubic`](cc.md#cubic)" in page
    assert "[`rfc`](stack.md#rfc)" in page


def test_a_schema_becomes_one_section_per_table() -> None:
    page = scenario.page(SCHEMA)
    assert "| `title` | string | required | What it is. |" in page
    assert "| `link` | tables of [Link](#link), by name |" in page
    assert "## Link\n\nA link." in page
    assert "| `up` | boolean | `true` |" in page
    assert "| `queue` | [Queue](#queue) |" in page
    assert '- `kind = "drop-tail"`: Drops the last.' in page
    assert "| `limit` | integer (≥ 1) |" in page


def test_columns_without_content_are_left_out() -> None:
    assert markdown.table(("a", "b", "c"), [("1", "", "x"), ("2", "", "")]) == (
        "| a | c |\n| --- | --- |\n| 1 | x |\n| 2 |  |\n"
    )


def test_writing_makes_stale_files_current(tmp_path: Path) -> None:
    wanted = {"reference/a.md": "new\n", "schema/s.json": "{}\n"}
    reference = tmp_path / "reference"
    reference.mkdir()
    (reference / "a.md").write_text("old\n", "utf-8")
    (reference / "gone.md").write_text("left over\n", "utf-8")
    (tmp_path / "index.md").write_text("by hand\n", "utf-8")
    expected = ["reference/a.md", "reference/gone.md", "schema/s.json"]
    assert files.stale(wanted, tmp_path) == expected
    assert files.write(wanted, tmp_path) == expected
    assert files.stale(wanted, tmp_path) == []
    assert (reference / "a.md").read_text("utf-8") == "new\n"
    assert not (reference / "gone.md").exists()
    assert (tmp_path / "index.md").exists()
