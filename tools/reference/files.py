"""Writing and comparing generated files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Folders with generated files only: obsolete files in them are removed.
OWNED = ("docs/schema", "docs/reference", "python/anabranch/builders")


def stale(wanted: Mapping[str, str], root: Path) -> list[str]:
    """Return the paths of files that are missing, outdated or obsolete."""
    differing = [path for path, text in wanted.items() if not _same(root / path, text)]
    return sorted(differing + _left_over(wanted, root))


def write(wanted: Mapping[str, str], root: Path) -> list[str]:
    """Bring the files up to date; return the paths that changed."""
    changed = stale(wanted, root)
    for path in changed:
        file = root / path
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


def _left_over(wanted: Mapping[str, str], root: Path) -> list[str]:
    there = (file for folder in OWNED for file in (root / folder).rglob("*") if file.is_file())
    return sorted({file.relative_to(root).as_posix() for file in there if file.suffix != ".pyc"} - set(wanted))
