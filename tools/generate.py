"""Write what can drift: the JSON Schema of scenario files and the reference pages.

    python tools/generate.py            writes docs/schema/ and docs/reference/
    python tools/generate.py --check    compares instead; exit status 1 when a file is out of date

Everything comes from the installed package: the schema and the registry from the engine, the
commands from the command line's own definitions, the Python page from signatures and docstrings,
the list of decisions from their headings.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import anabranch._engine as engine

from reference import cli, components, decisions, files, python_api, scenario

DOCS = Path(__file__).resolve().parent.parent / "docs"


def generated() -> dict[str, str]:
    """Return every generated file's text, by its path below docs/."""
    registry = json.loads(engine.registry())
    schema = json.loads(engine.schema())
    texts = {
        "schema/scenario.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        "reference/scenario.md": scenario.page(schema),
        "reference/cli.md": cli.page(),
        "reference/python.md": python_api.page(),
        "reference/components.md": components.index(registry),
        "decisions/index.md": decisions.index(DOCS / "decisions"),
    }
    for kind, entries in components.by_kind(registry).items():
        texts[f"reference/{kind}.md"] = components.page(kind, entries)
    return texts


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description="Write the generated reference and schema.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    wanted = generated()
    if arguments.check:
        outdated = files.stale(wanted, DOCS)
        for path in outdated:
            print(f"docs/{path}: out of date: run make generate", file=sys.stderr)
        if not outdated:
            print(f"generated: {len(wanted)} files are up to date")
        return 1 if outdated else 0
    for path in files.write(wanted, DOCS):
        print(f"docs/{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
