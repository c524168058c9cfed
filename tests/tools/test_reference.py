"""The reference shows the registry and the schema, and detects outdated files."""

from pathlib import Path
from typing import Any

from reference import components, decisions, embed, files, markdown, scenario

REGISTRY: list[dict[str, Any]] = [
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
        "details": {
            "sack": True,
            "recovery": "rfc6675",
            "reasons": {"sack": "As RFC 2018 has it."},
            "not_modelled": ["Urgent data | and more."],
        },
    },
]

SCHEMA: dict[str, Any] = {
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
    assert "| `sack` | `true` | As RFC 2018 has it. |" in page
    assert '| `recovery` | `"rfc6675"` |  |' in page
    assert "- Urgent data \\| and more.\n" in page
    assert "reasons" not in page


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


def test_a_bar_in_code_does_not_end_the_cell() -> None:
    assert markdown.code("a|<b>") == "<code>a&#124;&lt;b&gt;</code>"
    assert markdown.table(("x",), [(markdown.code("a|b"),)]).count("|") == 6


def test_writing_updates_outdated_files(tmp_path: Path) -> None:
    wanted = {"docs/reference/a.md": "new\n", "docs/schema/s.json": "{}\n"}
    reference = tmp_path / "docs" / "reference"
    reference.mkdir(parents=True)
    (reference / "a.md").write_text("old\n", "utf-8")
    (reference / "gone.md").write_text("left over\n", "utf-8")
    (tmp_path / "index.md").write_text("by hand\n", "utf-8")
    expected = ["docs/reference/a.md", "docs/reference/gone.md", "docs/schema/s.json"]
    assert files.stale(wanted, tmp_path) == expected
    assert files.write(wanted, tmp_path) == expected
    assert files.stale(wanted, tmp_path) == []
    assert (reference / "a.md").read_text("utf-8") == "new\n"
    assert not (reference / "gone.md").exists()
    assert (tmp_path / "index.md").exists()


def test_decisions_are_listed_by_their_headings(tmp_path: Path) -> None:
    (tmp_path / "100-b.md").write_text("# 100: second\n\nText.\n", "utf-8")
    (tmp_path / "001-a.md").write_text("# 001: first\n", "utf-8")
    (tmp_path / "index.md").write_text("old\n", "utf-8")
    page = decisions.index(tmp_path)
    assert page.endswith("- [001: first](001-a.md)\n- [100: second](100-b.md)\n")


def test_shown_files_are_inserted_and_others_remain(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("fn real() {}\n", "utf-8")
    page = '```rust title="a.rs"\nold\n```\n\n```rust title="b.rs"\nstays\n```\n'
    filled = embed.fill(page, tmp_path)
    assert filled == '```rust title="a.rs"\nfn real() {}\n```\n\n```rust title="b.rs"\nstays\n```\n'
    assert embed.fill(filled, tmp_path) == filled
