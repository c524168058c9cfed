"""The tables of the reordering study's page: ``docs/studies/reordering.md``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from anabranch.report.format import share

from comparison import ns3_reordering, scripts
from comparison.oracle import ROOT
from comparison.pages import Comparison
from reference import markdown

NAME = "reordering"
STUDY = "studies/reordering"


def results() -> str:
    """Return the claims with their verdicts, on the full grid."""
    done = subprocess.run(
        [sys.executable, "-m", "anabranch", "study", STUDY, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    claims: list[dict[str, Any]] = json.loads(done.stdout)["claims"]
    head = ["", "claim", "published", "measured", "verdict", "robustness", "on its wrong system"]
    return markdown.table(
        head,
        (
            [
                *(claim[key] for key in ("id", "claim", "published", "measured", "verdict")),
                share(claim["robustness"], stale=claim.get("robustness_stale", False)),
                claim["control"],
            ]
            for claim in claims
        ),
    )


def sensitivity() -> str:
    """Return how many claims hold with each alternative by itself, on the full grid."""
    rows = scripts.load(f"{STUDY}/sensitivity.py").rows(full=True)
    return markdown.table(["choice", "claims that hold", "that do not"], rows)


def remedies() -> str:
    """Return every remedy with what it keeps and what it costs, on the full grid."""
    head, body = scripts.load(f"{STUDY}/remedies.py").table(full=True)
    return markdown.table(head, body)


def comparison() -> Comparison:
    """Write the page's tables anew."""
    beside = [row for group in ns3_reordering.groups().values() for row in group]
    parts = {
        "results": results(),
        "sensitivity": sensitivity(),
        "remedies": remedies(),
        "ns3": ns3_reordering.study().markdown(beside) + "\n",
    }
    return Comparison(NAME, parts, [], lambda: iter(()), folder="docs/studies")
