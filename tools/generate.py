"""Write what can drift: the JSON Schema of scenario files and the reference pages.

    python tools/generate.py            writes docs/schema/ and docs/reference/
    python tools/generate.py --check    compares instead; exit status 1 when a file is out of date

Everything comes from the installed package: the schema and the registry from the engine, the
commands from the command line's own definitions, the Python pages from signatures and docstrings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anabranch._engine as engine

from reference import cli, components, python_api, scenario

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

# Folders that hold nothing but generated files: what is no longer generated is removed from them.
OWNED = ("schema", "reference")


def schema_text() -> str:
    """Return the schema as the file an editor reads."""
    return json.dumps(json.loads(engine.schema()), indent=2, ensure_ascii=False) + "\n"


def generated() -> dict[str, str]:
    """Return every generated file's text, by its path below docs/."""
    registry = json.loads(engine.registry())
    schema = json.loads(engine.schema())
    pages: dict[str, Callable[[], str]] = {
        "schema/scenario.schema.json": schema_text,
        "reference/scenario.md": lambda: scenario.page(schema),
        "reference/cli.md": cli.page,
        "reference/python.md": python_api.page,
        "reference/components.md": lambda: components.index(registry),
    }
    texts = {path: write() for path, write in pages.items()}
    for kind, entries in components.by_kind(registry).items():
        texts[f"reference/{kind}.md"] = components.page(kind, entries)
    return texts


def stale(wanted: Mapping[str, str], docs: Path) -> list[str]:
    """Return the paths whose files differ from what they should be, or should not be there."""
    differing = [path for path, text in wanted.items() if not _same(docs / path, text)]
    return sorted(differing + left_over(wanted, docs))


def left_over(wanted: Mapping[str, str], docs: Path) -> list[str]:
    """Return the files in the generated folders that nothing generates any more."""
    there = (file for folder in OWNED for file in (docs / folder).rglob("*") if file.is_file())
    return sorted({file.relative_to(docs).as_posix() for file in there} - set(wanted))


def write(wanted: Mapping[str, str], docs: Path) -> list[str]:
    """Bring the files up to date; return the paths that changed."""
    changed = stale(wanted, docs)
    for path in changed:
        file = docs / path
        if path not in wanted:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(file.name + ".new")
        aside.write_text(wanted[path], "utf-8")
        aside.replace(file)
    return changed


def _same(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text("utf-8") == text


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description="Write the generated reference and schema.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    wanted = generated()
    if arguments.check:
        outdated = stale(wanted, DOCS)
        for path in outdated:
            print(f"docs/{path}: out of date: run make generate", file=sys.stderr)
        if not outdated:
            print(f"generated: {len(wanted)} files are up to date")
        return 1 if outdated else 0
    for path in write(wanted, DOCS):
        print(f"docs/{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
