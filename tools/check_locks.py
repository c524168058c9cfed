"""Check that no lock file holds a download address.

A lock file names versions and hashes. An address in it would tie every user to the index of its
author. The one exception is the fixed identifier by which Cargo.lock names the public registry:
Cargo writes the same identifier for any configured mirror. npm's `funding` names the pages of a
package's authors, from which nothing is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_LOCK_NAME = re.compile(r"(\.lock$)|(lock\.(json|ya?ml|toml)$)|(^requirements[^/]*\.txt$)|(^go\.sum$)")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_INDEX_OPTION = re.compile(r"^\s*(-i|-f|--index-url|--extra-index-url|--find-links)\b")
_CARGO_IDENTIFIER = 'source = "registry+https://github.com/rust-lang/crates.io-index"'


def is_lock(path: str) -> bool:
    """Whether a path names a lock file."""
    return _LOCK_NAME.search(path.rsplit("/", 1)[-1]) is not None


def addresses(path: str, text: str) -> list[str]:
    """Return ``path:line: …`` for every download address in a lock file's text."""
    found = []
    is_funding = False
    for number, line in enumerate(text.splitlines(), 1):
        is_funding = line.strip() == '"funding": {' or (is_funding and "}" not in line)
        if is_funding:
            continue
        if path.endswith("Cargo.lock") and line.strip() == _CARGO_IDENTIFIER:
            continue
        # The host may be private, so the message gives the line and not the address.
        if _ADDRESS.search(line) or _INDEX_OPTION.match(line):
            found.append(f"{path}:{number}: holds a download address")
    return found


def main() -> int:
    """Check every lock file that Git tracks or would add."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = sorted({path for path in listing.stdout.splitlines() if is_lock(path) and (ROOT / path).is_file()})
    found = [line for path in paths for line in addresses(path, (ROOT / path).read_text("utf-8"))]
    for line in found:
        print(line, file=sys.stderr)
    if not paths:
        print("no lock file found: is this the checkout?", file=sys.stderr)
    if found or not paths:
        return 1
    print(f"locks: {', '.join(paths)} hold no address")
    return 0


if __name__ == "__main__":
    sys.exit(main())
