"""Insert a validation's results into its page: table, verdict and figure.

    anabranch validate --seeds 2 --out out/validation scenarios/live/*.toml
    python validation/live_validation.py out/validation

`make validate` does both. Live runs do not repeat byte for byte, so the page is not checked against
new ones.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from comparison.oracle import ROOT
from comparison.pages import FOLDER, fill

NAME = "live"


def main() -> int:
    """Fill the page in from a directory."""
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} DIRECTORY, as `anabranch validate --out` writes it", file=sys.stderr)
        return 2
    source = Path(sys.argv[1])
    try:
        document = json.loads((source / "validation.json").read_text("utf-8"))
        told = (source / "validation.md").read_text("utf-8")
    except (OSError, ValueError) as error:
        print(f"{source}: {error}: expected what `anabranch validate --out` writes", file=sys.stderr)
        return 2
    verdict, _, rows = told.partition("\n\n")
    wrong = "\n".join(f"- {problem}" for problem in document["problems"])
    machine = document["machine"]
    kernel = machine["kernel"].split("-")[0]
    about = f"Linux {kernel}, {machine['processors']} processors, seeds of each scenario: {document['seeds']}.\n"
    verdict = f"{about}\n{verdict.strip()}\n\n" + (f"It fails:\n\n{wrong}" if wrong else "It passes.")
    page = ROOT / FOLDER / f"{NAME}.md"
    parts = {"verdict": verdict, "rows": rows.strip()}
    page.write_text(fill(page.read_text("utf-8"), parts, str(page)), "utf-8")
    shutil.copyfile(source / "validation.svg", page.with_name("live-validation.svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
