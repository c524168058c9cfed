"""Run the behaviour scripts of ``tests/scripts`` on this machine's kernel, and report the differences.

    python validation/kernel_scripts.py            # prints the generated part of docs/validation/scripts-kernel.md
    python validation/kernel_scripts.py --write    # brings the page up to date

Needs Linux, root and ``/dev/net/tun``. Each script runs in a separate network namespace, which ends
with it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from comparison.pages import fill

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "tests/scripts"
PAGE = ROOT / "docs/validation/scripts-kernel.md"
PART = "scripts"
BEGIN, END = f"<!-- begin {PART} -->", f"<!-- end {PART} -->"
# The profile and the features of `make test`, so that its results are used.
BUILD = ("cargo", "build", "--quiet", "--profile", "release", "--locked", "--workspace", "--example", "scripts")
LONGEST = 900.0
"""Seconds after which the runner counts as hung."""

Outcome = dict[str, Any]


def scripts() -> list[Path]:
    """Every script, by topic and name."""
    return sorted(SCRIPTS.glob("*/*.pkt"))


def run(files: Sequence[Path], settings: Mapping[str, int] | None = None) -> list[Outcome]:
    """The kernel's outcome of each script, with other settings if given.

    Raises:
        RuntimeError: A script could not be run.
    """
    subprocess.run(BUILD, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    sets = [word for name, value in (settings or {}).items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [target / "release/examples/scripts", *sets, *(file.relative_to(ROOT) for file in files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    broken = [str(outcome["message"]) for outcome in outcomes if outcome["outcome"] == "failed"]
    if done.returncode != 0 or broken or len(outcomes) != len(files):
        raise RuntimeError(done.stderr.strip() or "; ".join(broken) or "some scripts have no outcome")
    return sorted(outcomes, key=lambda outcome: str(outcome["script"]))


def message(outcome: Outcome) -> str:
    """The kernel's first difference, for a cell of a table."""
    place = str(outcome["message"]).split(".pkt:", 1)
    text = re.sub(r"(\d+\.\d{3})\d+ s", r"\1 s", place[-1]).replace("|", "\\|").replace("\n", " ")
    where, _, what = text.partition(": ")
    return f"line {where.split(':')[0]}: {what}" if len(place) == 2 else text


def name(outcome: Outcome) -> str:
    """A script's name on the page."""
    return str(outcome["script"]).removeprefix("tests/scripts/")


def generated(outcomes: Sequence[Outcome]) -> str:
    """The part between the page's markers."""
    kinds = ("agrees", "varies", "differs", "not-applicable", "late")
    lines = [
        f"Linux {platform.release().split('-')[0]}.",
        "",
        "| profile of the script | scripts | agrees | agrees in some runs | differs | not applicable | too busy |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for stack in ("linux", "rfc"):
        of_stack = [outcome["outcome"] for outcome in outcomes if outcome["stack"] == stack]
        counts = " | ".join(str(of_stack.count(kind)) for kind in kinds)
        lines.append(f"| `{stack}` | {len(of_stack)} | {counts} |")
    titles = {
        ("linux", "varies"): "Where the kernel does not always do what the profile `linux` does",
        ("linux", "differs"): "Where the kernel differs from the profile `linux`",
        ("linux", "late"): "Which could not be told of the profile `linux`",
        ("rfc", "varies"): "Where the kernel does not always do what the profile `rfc` does",
        ("rfc", "differs"): "Where the kernel differs from the profile `rfc`",
        ("rfc", "late"): "Which could not be told of the profile `rfc`",
    }
    for (stack, kind), title in titles.items():
        rows = [o for o in outcomes if (o["stack"], o["outcome"]) == (stack, kind)]
        if rows:
            lines += ["", f"### {title}", "", "| script | agrees in | first difference |", "| --- | --- | --- |"]
            lines += [f"| {name(row)} | {row['agreed']} of {row['runs']} runs | {message(row)} |" for row in rows]
    rows = [o for o in outcomes if o["outcome"] == "not-applicable"]
    lines += ["", "### Not applicable", "", "| script | why |", "| --- | --- |"]
    lines += [f"| {name(row)} | {message(row)} |" for row in rows]
    rows = [o for o in outcomes if o["outcome"] == "agrees"]
    lines += ["", "### Agreement", "", "In each of at least three runs:", ""]
    lines += [", ".join(name(row) for row in rows) + "."]
    return "\n".join(lines)


def replaced(page: str, text: str) -> str:
    """The page with this text between its markers."""
    return fill(page, {PART: text}, str(PAGE))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all scripts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="bring docs/validation/scripts-kernel.md up to date")
    options = parser.parse_args(arguments)
    try:
        text = generated(run(scripts()))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
