"""Count files, methods that share an object, modules at the root and untyped dictionaries.

    python tools/count_structure.py [--root TREE] [--beside TREE]

``--beside`` adds a column with the counts of an older tree.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG, LONGEST = 500, 800

IMPL = re.compile(r"^impl(?:<[^>]*>)? Sender\b[^{]*\{(.*?)^\}", re.M | re.S)
METHOD = re.compile(r"^    (?:pub(?:\([a-z]+\))? )?(?:const )?(?:unsafe )?fn ", re.M)
STRUCT = re.compile(r"^pub(?:\([a-z]+\))? struct Sender\b[^{]*\{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^    (?:pub(?:\([a-z]+\))? )?[a-z_0-9]+: ", re.M)
TUPLE_WITH_BOOL = re.compile(r"^\s*\((?:[a-z_]+(?:, )?)+\): \([^)]*\bbool\b[^)]*\)", re.M)


def sources(root: Path, *patterns: str) -> dict[Path, str]:
    """Texts of the files that match."""
    return {path: path.read_text("utf-8") for pattern in patterns for path in sorted(root.glob(pattern))}


def rust(root: Path) -> dict[Path, str]:
    """The crates without their tests."""
    return sources(root, "crates/*/src/**/*.rs")


def python(root: Path) -> dict[Path, str]:
    """The Python package."""
    return sources(root, "python/anabranch/**/*.py")


def lines(files: dict[Path, str]) -> int:
    """Lines in all files."""
    return sum(text.count("\n") for text in files.values())


def longer(files: dict[Path, str], most: int) -> int:
    """Number of files with more than ``most`` lines."""
    return sum(text.count("\n") > most for text in files.values())


def sender(root: Path) -> dict[Path, str]:
    """Files with methods of the sender."""
    return {path: text for path, text in sources(root, "crates/tcp/src/**/*.rs").items() if IMPL.search(text)}


def fields(root: Path) -> int:
    """Fields of the sender itself."""
    found = (STRUCT.search(text) for text in sources(root, "crates/tcp/src/sender.rs").values())
    return sum(len(FIELD.findall(match[1])) for match in found if match)


def methods(root: Path) -> int:
    """Methods of the sender."""
    return sum(len(METHOD.findall(body)) for text in sender(root).values() for body in IMPL.findall(text))


def matches(files: dict[Path, str], pattern: str) -> int:
    """Number of matches of a pattern."""
    return sum(len(re.findall(pattern, text)) for text in files.values())


def depends(root: Path, crate: str) -> str:
    """The workspace crates on which a crate depends, without its test dependencies."""
    text = (root / f"crates/{crate}/Cargo.toml").read_text("utf-8").split("[dev-dependencies]")[0]
    return ", ".join(name for name in re.findall(r"^anabranch-([a-z]+)\b", text, re.M)) or "none"


COUNTS: dict[str, Callable[[Path], int | str]] = {
    "lines of Rust": lambda root: lines(rust(root)),
    "lines of Rust tests": lambda root: lines(sources(root, "crates/*/tests/**/*.rs")),
    "lines of Python": lambda root: lines(python(root)),
    f"files over {LONG} lines": lambda root: longer(rust(root) | python(root), LONG),
    f"files over {LONGEST} lines": lambda root: longer(rust(root) | python(root), LONGEST),
    "fields of Sender": fields,
    "methods of Sender": methods,
    "files with methods of Sender": lambda root: len(sender(root)),
    "arguments in a tuple with booleans": lambda root: sum(
        len(TUPLE_WITH_BOOL.findall(text)) for text in rust(root).values()
    ),
    "crates that path needs": lambda root: depends(root, "path"),
    "crates that gatewayd needs": lambda root: depends(root, "gatewayd"),
    "modules at the root of the Python package": lambda root: len(list(root.glob("python/anabranch/*.py"))),
    "dict[str, Any] in Python": lambda root: matches(python(root), r"dict\[str, Any\]"),
}


def main() -> int:
    """Print the counts as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--beside", type=Path, help="an older tree")
    options = parser.parse_args()
    trees = [tree for tree in (options.beside, options.root) if tree]
    for name, count in COUNTS.items():
        print("| " + " | ".join([name, *(str(count(tree)) for tree in trees)]) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
