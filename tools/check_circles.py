"""Check that no crate has import circles across its modules and folders.

Modules of one folder may import each other. Two folders, or a folder and a module at the same
level, may not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_USE = re.compile(r"^([ \t]*)(?:pub(?:\([a-z]+\))? )?use ([^;]+);", re.MULTILINE)
_INLINE = re.compile(r"\bcrate::([a-z_0-9]+)::")


def leaves(tree: str) -> Iterator[list[str]]:
    """The paths of a ``use`` tree, cut at ``::``."""
    tree = tree.strip()
    if "{" not in tree:
        yield [part.strip() for part in tree.split("::")]
        return
    head, _, rest = tree.partition("{")
    prefix = [part.strip() for part in head.split("::") if part.strip()]
    for item in _items(rest.rpartition("}")[0]):
        for leaf in leaves(item):
            yield prefix + leaf


def _items(text: str) -> Iterator[str]:
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:]


def imports(source: Path) -> Mapping[str, set[str]]:
    """The imports of each module or folder at the top of a crate's ``src``."""
    tops = {path.stem for path in source.iterdir()} - {"lib", "main"}
    known: dict[str, set[str]] = {top: set() for top in tops}
    for file in source.rglob("*.rs"):
        relative = file.relative_to(source)
        top = relative.parts[0].removesuffix(".rs")
        if top not in tops:
            continue
        text = file.read_text("utf-8")
        named = set(_INLINE.findall(text))
        for indent, tree in _USE.findall(text):
            for leaf in leaves(tree):
                ups = next((at for at, part in enumerate(leaf) if part != "super"), len(leaf))
                if leaf[0] == "crate" and len(leaf) > 1:
                    named.add(leaf[1].split()[0])
                elif ups == len(relative.parts) and not indent and ups < len(leaf):
                    named.add(leaf[ups].split()[0])
        known[top] |= (named & tops) - {top}
    return known


def circles(known: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other directly or through others."""

    def reached(begin: str) -> set[str]:
        found: set[str] = set()
        waiting = [begin]
        while waiting:
            for other in known[waiting.pop()]:
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    reach = {module: reached(module) for module in known}
    groups = {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in known if a in reach[a]}
    return [list(group) for group in sorted(groups)]


def main() -> int:
    """Print the circles; exit status 1 if there are any."""
    found = False
    crates = sorted((ROOT / "crates").iterdir())
    for crate in crates:
        for group in circles(imports(crate / "src")):
            found = True
            print(f"crates/{crate.name}/src: import circle of {', '.join(group)}")
    if not found:
        print(f"circles: none across the folders of {len(crates)} crates")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
