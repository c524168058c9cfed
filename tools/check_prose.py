"""Count expressions of a private dialect, which the language rules replace, per 1,000 words of prose.

    python tools/check_prose.py             fail if a part exceeds its limit in tools/prose.toml
    python tools/check_prose.py --update    lower the limits to the current counts
    python tools/check_prose.py --list PART print the counted paragraphs of a part

Prose is comments, doc comments, docstrings, pages and names of tests. A limit may only fall.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "tools/prose.toml"
GOAL = 2.0
"""Counts up to this one never fail, even above a lower limit."""

HABITS: dict[str, str] = {
    "what, for a noun": r"\bwhat\b(?![^.!?]*\?)",
    "tells, told": r"\b(?:tells?|told|telling)\b",
    "behind": r"\bbehind\b",
    "those that, the one that": r"\bthose (?:that|of|who|which)\b|\bthe ones? (?:that|of|who|which)\b",
    "stands": r"\b(?:stands?|stood)\b",
    "so many, as much": r"\b(?:so|as) (?:many|much|long|far|often|late|early)\b(?! as)",
    "of its own": r"\bof (?:its|their|his|one's) own\b",
    "nobody, whoever": r"\b(?:nobody|whoever|strangers?|everybody)\b",
    "besides, anew, one by one": r"\b(?:besides|anew|one by one)\b",
    "objects that hear, want, forget": (
        r"\b(?:hears?|wants?|wanted|forgets?|forgotten)\b"
        r"|\b(?:it|which|that|end|peer|receiver|sender|control|queue|link) knows?\b"
    ),
    "news, trouble, fate": r"\b(?:trouble|news|fate|in doubt)\b",
    "inverted clause": r"(?:^|[.:;] )(?:Where|Of (?:these|those|the)) [^.;:]*, ",
    "fails for one that": r"\bfails? (?:for|with|on) (?:one|an?other|a system) that\b",
}
"""Habits of the language rules: name and regular expression."""

PATTERN = re.compile("|".join(f"(?P<h{index}>{habit})" for index, habit in enumerate(HABITS.values())), re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
CODE = re.compile(r"`[^`]*`|\[`[^`]*`\]\([^)]*\)|https?://\S+|\{[a-z_]+\}")
RUST_TEST = re.compile(r"#\[(?:tokio::)?test\][^{]*?\bfn (\w+)", re.S)
RUST_PROSE = re.compile(r"^\s*//[/!]?(.*)$", re.M)


@dataclass(frozen=True)
class Count:
    """Expressions and words of a part."""

    found: int
    words: int

    def rate(self) -> float:
        """Per 1,000 words."""
        return 1000 * self.found / self.words if self.words else 0.0


def paragraphs(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join consecutive lines to paragraphs, which end at an empty line, a list item and a heading."""
    held: list[str] = []
    first = last = 0
    for number, line in lines:
        text = line.strip()
        if held and (number != last + 1 or not text or text.startswith(("- ", "* ", "#", "|"))):
            yield first, " ".join(held)
            held = []
        last = number
        if text:
            first = first if held else number
            held.append(text.lstrip("-*#| "))
    if held:
        yield first, " ".join(held)


def rust(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments and names of tests."""
    fenced = False
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        match = RUST_PROSE.match(line)
        if match is None:
            fenced = False
        elif match[1].strip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append((number, match[1]))
    yield from paragraphs(iter(lines))
    for match in RUST_TEST.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1].replace("_", " ")


def python(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, docstrings and names of tests."""
    lines: list[tuple[int, str]] = []
    previous = None
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines.append((token.start[0], token.string.lstrip("#: ")))
        elif (
            token.type == tokenize.STRING
            and depth == 0
            and previous in {None, tokenize.INDENT, tokenize.NEWLINE, tokenize.NL}
        ):
            body = token.string.strip("rRbBuUfF").strip("\"'")
            lines += [(token.start[0] + index, line) for index, line in enumerate(body.splitlines())]
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            lines += [(token.start[0], ""), (token.start[0], token.string.replace("_", " ")), (token.start[0], "")]
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type != tokenize.COMMENT:
            previous = token.type
    yield from paragraphs(iter(lines))


def markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text outside code blocks."""
    fenced = False
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append((number, line))
    yield from paragraphs(iter(lines))


READERS = {".rs": rust, ".py": python, ".md": markdown}


def parts(root: Path) -> dict[str, list[Path]]:
    """Return the files of each part: a crate, the Python package, a folder of tests or pages."""
    found: dict[str, list[Path]] = {}

    def add(name: str, *patterns: str) -> None:
        files = sorted(path for pattern in patterns for path in root.glob(pattern) if path.suffix in READERS)
        if files:
            found[name] = files

    for crate in sorted((root / "crates").iterdir()) if (root / "crates").is_dir() else ():
        add(f"crates/{crate.name}", f"crates/{crate.name}/**/*.rs")
    add("python", "python/anabranch/**/*.py")
    for folder in ("tests", "tools", "validation"):
        add(folder, f"{folder}/**/*.py", f"{folder}/**/*.rs")
    add("pages", "*.md")
    for room in sorted((root / "docs").iterdir()) if (root / "docs").is_dir() else ():
        if room.is_dir():
            add(f"docs/{room.name}", f"docs/{room.name}/**/*.md")
    add("docs", "docs/*.md")
    return found


def hits(path: Path) -> Iterator[tuple[int, str, list[str], int]]:
    """Yield paragraphs: line, text, habits found, number of words."""
    for number, text in READERS[path.suffix](path.read_text("utf-8")):
        plain = CODE.sub(" ", text)
        habits = [list(HABITS)[int(match.lastgroup[1:])] for match in PATTERN.finditer(plain) if match.lastgroup]
        yield number, text, habits, len(WORD.findall(plain))


def count(files: list[Path]) -> Count:
    """Count a part."""
    found = words = 0
    for path in files:
        for _, _, habits, length in hits(path):
            found += len(habits)
            words += length
    return Count(found, words)


def main() -> int:
    """Compare the counts with the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="lower the limits to what there is")
    parser.add_argument("--list", metavar="PART", help="print the sentences of a part that count")
    parser.add_argument("--root", type=Path, default=ROOT, help="another tree, to compare with")
    options = parser.parse_args()
    everything = parts(options.root)
    if options.list:
        for path in everything.get(options.list, ()):
            for number, text, habits, _ in hits(path):
                if habits:
                    print(f"{path.relative_to(options.root)}:{number}: {', '.join(sorted(set(habits)))}: {text}")
        return 0
    limits: dict[str, float] = tomllib.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else {}
    counts = {name: count(files) for name, files in everything.items()}
    worse = [
        f"{name}: {one.rate():.1f} expressions of a private dialect per 1,000 words, {limits[name]} are allowed; "
        f"see python tools/check_prose.py --list {name}"
        for name, one in counts.items()
        if name in limits and one.rate() > max(limits[name], GOAL) + 0.05
    ]
    if options.update:
        kept = {name: min(round(one.rate(), 1), limits.get(name, 1000.0)) for name, one in counts.items()}
        LIMITS.write_text("".join(f'"{name}" = {rate}\n' for name, rate in kept.items()), "utf-8")
    else:
        for name, one in counts.items():
            print(f"{one.rate():6.1f}  {one.found:5} in {one.words:6} words  {name}")
        total = Count(sum(one.found for one in counts.values()), sum(one.words for one in counts.values()))
        print(f"{total.rate():6.1f}  {total.found:5} in {total.words:6} words  in all")
    for line in worse:
        print(f"error: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
