"""Write the files derived from the sources: the JSON Schema of scenario files and the reference pages.

    python tools/generate.py            writes them
    python tools/generate.py --check    compares instead; exit status 1 when a file is out of date

Everything comes from the installed package:

- schema and registry from the engine;
- the commands and the manual page from the command line's definitions;
- the builders from schema and registry;
- the Python page from signatures and docstrings;
- the list of decisions from their headings;
- the files shown in CONTRIBUTING.md from the files;
- the tables of claims, and of results beyond the papers, from the pages of the studies;
- the figures of the state of the project from the pages that measured them;
- the formats of conversions and the limits of diagnoses from their registries;
- the typed dictionaries and the names of results from the engine's structs;
- the items of evaluations from their table;
- the documents of diagnoses and of the gateway's status, and their types in Python, from their structs;
- the names that the studio's controls offer from the registry;
- the module graph from the manifests of the crates and the imports of Python.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import anabranch._engine as engine
from anabranch.cli.app import app

import draw_structure
from reference import (
    beyond,
    builders,
    claims,
    cli,
    components,
    conversions,
    decisions,
    declared,
    diagnosis,
    document_types,
    documents,
    embed,
    evaluation,
    files,
    man,
    python_api,
    results,
    scenario,
    state,
    stress,
    summary_types,
)

ROOT = Path(__file__).resolve().parent.parent


def generated() -> dict[str, str]:
    """Return the text of each generated file, by its path in the checkout."""
    registry = json.loads(engine.registry())
    schema = json.loads(engine.schema())
    texts = {
        "studio/src/model/names.json": studio_names(registry),
        "docs/schema/scenario.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
        "docs/reference/scenario.md": scenario.page(schema),
        "docs/reference/cli.md": cli.page(app),
        "docs/man/anabranch.1": man.page(app, engine.version()),
        "docs/reference/python.md": python_api.page(),
        "docs/reference/results.md": results.page(),
        summary_types.FILE: summary_types.file(),
        declared.FILE: declared.file(),
        "docs/reference/documents.md": documents.page(ROOT),
        "docs/reference/components.md": components.index(registry),
        "docs/design/index.md": decisions.index(ROOT / "docs" / "design"),
    }
    for kind, entries in components.by_kind(registry).items():
        texts[f"docs/reference/{kind}.md"] = components.page(kind, entries)
    texts |= builders.Writer(schema, registry).files()
    texts |= document_types.files(ROOT)
    contributing = ROOT / "CONTRIBUTING.md"
    front = ROOT / "docs" / "index.md"
    texts["docs/index.md"] = claims.fill(front.read_text("utf-8"), ROOT)
    texts["docs/studies/claims.md"] = claims.page(ROOT)
    further = ROOT / "docs" / "studies" / "beyond.md"
    texts["docs/studies/beyond.md"] = beyond.fill(further.read_text("utf-8"), ROOT)
    summary = ROOT / "docs" / "state.md"
    texts["docs/state.md"] = state.fill(summary.read_text("utf-8"), ROOT)
    guide = ROOT / "docs" / "guides" / "convert.md"
    texts["docs/guides/convert.md"] = conversions.fill(guide.read_text("utf-8"))
    guide = ROOT / "docs" / "guides" / "diagnose.md"
    texts["docs/guides/diagnose.md"] = diagnosis.fill(guide.read_text("utf-8"))
    guide = ROOT / "docs" / "guides" / "evaluate.md"
    texts["docs/guides/evaluate.md"] = evaluation.fill(guide.read_text("utf-8"))
    guide = ROOT / "docs" / "guides" / "stress.md"
    texts["docs/guides/stress.md"] = stress.fill(guide.read_text("utf-8"))
    for name, picture in zip(("crates", "python"), draw_structure.pictures(ROOT), strict=True):
        texts[f"docs/design/structure/{name}.svg"] = picture
    texts["CONTRIBUTING.md"] = embed.fill(contributing.read_text("utf-8"), ROOT)
    return texts


def studio_names(registry: list[dict[str, Any]]) -> str:
    """The names that the studio's controls offer."""
    kinds = {"queues": "queue", "controls": "cc"}
    names = {
        key: [item["name"] for item in registry if item["kind"] == kind and item["name"] != "bpf"]
        for key, kind in kinds.items()
    }
    return json.dumps(names, indent=2) + "\n"


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description="Write the generated reference and schema.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    if not arguments.check:
        # The package reads it, and pages are made with the package.
        (ROOT / declared.FILE).write_text(declared.file(), "utf-8")
    wanted = generated()
    if arguments.check:
        outdated = files.stale(wanted, ROOT)
        for path in outdated:
            print(f"{path}: out of date: run make generate", file=sys.stderr)
        if not outdated:
            print(f"generated: {len(wanted)} files are up to date")
        return 1 if outdated else 0
    for path in files.write(wanted, ROOT):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
