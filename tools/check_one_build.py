"""Check that the engine and the tests are built from the same crates with the same features.

    python tools/check_one_build.py

If the tests need a crate with an additional feature, the crate and everything that depends on it
are compiled twice. The check prints a line for each such crate and has exit status 1.
`crates/py/Cargo.toml` lists the features that make both builds equal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

Crate = tuple[str, str]
"""Name, version and level of optimization, which differs between target and build scripts."""


def features(graph: Mapping[str, Any]) -> dict[Crate, set[tuple[str, ...]]]:
    """The sets of features of each library of a unit graph (`cargo --unit-graph`)."""
    found: dict[Crate, set[tuple[str, ...]]] = {}
    for unit in graph["units"]:
        if unit["mode"] == "build" and "custom-build" not in unit["target"]["kind"]:
            crate = (unit["pkg_id"].rsplit("/", 1)[-1].rsplit("#", 1)[-1], unit["profile"]["opt_level"])
            found.setdefault(crate, set()).add(tuple(unit["features"]))
    return found


def differences(
    engine: Mapping[Crate, set[tuple[str, ...]]], tests: Mapping[Crate, set[tuple[str, ...]]]
) -> Iterable[str]:
    """A line for each crate that both graphs build with different features."""
    for crate in sorted(engine.keys() & tests.keys()):
        if engine[crate] != tests[crate]:
            ours, theirs = ({feature for each in side[crate] for feature in each} for side in (engine, tests))
            yield f"{crate[0]}: only the engine {sorted(ours - theirs)}, only the tests {sorted(theirs - ours)}"


def unit_graph(*arguments: str) -> Mapping[str, Any]:
    """The unit graph of a cargo command, with the profile of `make demo`."""
    command = ["cargo", *arguments, "--profile", "release", "--locked", "--unit-graph", "-Z", "unstable-options"]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    graph: Mapping[str, Any] = json.loads(done.stdout)
    return graph


def main() -> int:
    """Print the differences; exit status 1 if there are any."""
    lines = list(
        differences(
            features(unit_graph("build", "-p", "anabranch-py")),
            features(unit_graph("test", "--no-run", "--workspace")),
        )
    )
    print("\n".join(lines) or "the engine and the tests are one build")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
