"""Follow the instructions of CONTRIBUTING.md in a copy of the sources, and run the tests.

The script writes the file shown for the inside of the project and adds its line to the registry.
Then it lints the crate and runs its congestion-control tests, which cover every registered control.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from reference.embed import Block, blocks

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "contribution"
REGISTRY = "in crates/congestion/src/lib.rs"


def new_file(shown: list[Block]) -> Block:
    """Return the block that shows the new source file."""
    return next(block for block in shown if (block.title or "").startswith("crates/congestion/src/"))


def registry_line(shown: list[Block]) -> str:
    """Return the line that the registry block adds: the last one before its closing brace."""
    block = next(block for block in shown if block.title == REGISTRY)
    return block.text.rstrip().splitlines()[-2]


def register(source: str, line: str) -> str:
    """Add a line to the registry at the end of the crate's ``lib.rs``."""
    added, count = re.subn(r"^(components! \{\n(?:[^}]*\n)?)(\})", rf"\g<1>{line}\n\2", source, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit("crates/congestion/src/lib.rs: expected one invocation of components!")
    return added


def copy_sources() -> None:
    """Copy the sources of the workspace."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock", "clippy.toml"):
        shutil.copy2(ROOT / name, COPY / name)
    for folder in ("crates", "bench"):
        shutil.copytree(ROOT / folder, COPY / folder, ignore=shutil.ignore_patterns("target"))


def main() -> int:
    """Apply the contribution to a copy and check it."""
    shown = list(blocks((ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    block = new_file(shown)
    if (ROOT / str(block.title)).exists():
        raise SystemExit(f"{block.title} exists: CONTRIBUTING.md should show something new")
    copy_sources()
    (COPY / str(block.title)).write_text(block.text, "utf-8")
    registry = COPY / "crates" / "congestion" / "src" / "lib.rs"
    registry.write_text(register(registry.read_text("utf-8"), registry_line(shown)), "utf-8")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "INSTA_UPDATE": "always"}
    for command in (
        ["rustfmt", "--check", "--edition", "2024", str(block.title)],
        ["cargo", "clippy", "-p", "anabranch-congestion", "--locked", "--", "-D", "warnings"],
        ["cargo", "test", "-p", "anabranch-congestion", "--locked", "--test", "all"],
    ):
        if subprocess.run(command, cwd=COPY, env=environment, check=False).returncode != 0:
            print(f"CONTRIBUTING.md: its example fails at: {' '.join(command)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
