"""Diagnoses of public captures: the number read, crashes, broken invariants, and the slowest.

    tools/env python validation/diagnose/public.py FOLDER [--clones CLONES]

FOLDER has the captures as `OWNER+NAME/PATH`. With --clones they are first extracted from bare
clones, which are named `OWNER+NAME` or have a directory `OWNER+NAME/repo`. The list of captures is
kept here: repository, commit, path and SHA-256 of each, not the files. Files that are not on the
list, or have another content, are not read.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from diagnose.invariants import violations

LIST = Path(__file__).parents[1] / "data" / "public-captures.csv.gz"
"""`repository,commit,path,sha256`, compressed."""
MOST_SHOWN = 20
"""Printed lines of each kind."""
LEAST_MB = 0.1
"""Smaller files measure the start of the program rather than their content."""


@dataclass(frozen=True)
class Capture:
    """A public capture."""

    repository: str
    commit: str
    path: str
    sha256: str

    def place(self, folder: Path) -> Path:
        """The capture's path in a folder of captures."""
        return folder / self.repository.replace("/", "+") / self.path


@dataclass
class Tally:
    """Results over all captures."""

    read: int = 0
    missing: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    times: list[tuple[float, float, str]] = field(default_factory=list)
    """Seconds, megabytes and path of each."""


def listed() -> list[Capture]:
    """The captures of the list."""
    with gzip.open(LIST, "rt", encoding="utf-8", newline="") as file:
        return [Capture(**row) for row in csv.DictReader(file)]


def extract(captures: Iterable[Capture], clones: Path, folder: Path) -> None:
    """Extract captures from bare clones."""
    by_clone: dict[str, list[Capture]] = {}
    for capture in captures:
        by_clone.setdefault(capture.repository.replace("/", "+"), []).append(capture)
    for name, wanted in by_clone.items():
        clone = next((one for one in (clones / name / "repo", clones / name) if (one / "HEAD").exists()), None)
        if clone is None:
            continue
        command = ["git", "--git-dir", str(clone), "cat-file", "--batch"]
        asked = "".join(f"{one.commit}:{one.path}\n" for one in wanted).encode()
        given = subprocess.run(command, input=asked, capture_output=True, check=True).stdout
        at = 0
        for one in wanted:
            end = given.index(b"\n", at)
            head, at = given[at:end].split(), end + 1
            if head[-1] == b"missing":
                continue
            content, at = given[at : at + int(head[2])], at + int(head[2]) + 1
            place = one.place(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def diagnoses(
    captures: Iterable[Capture], folder: Path
) -> Iterator[tuple[Path, dict[str, Any] | BaseException, float]]:
    """The diagnosis of each present capture with the listed content, or the exception, and the seconds."""
    from anabranch import diagnose  # noqa: PLC0415 - the list is read without the engine

    for capture in captures:
        place = capture.place(folder)
        if not place.is_file() or hashlib.sha256(place.read_bytes()).hexdigest() != capture.sha256:
            yield place, FileNotFoundError(place), 0.0
            continue
        start = time.process_time()
        try:
            found: dict[str, Any] | BaseException = diagnose(place)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A panic of the engine is not an Exception.
            found = error
        yield place, found, time.process_time() - start


def tally(captures: Iterable[Capture], folder: Path) -> Tally:
    """Read all captures."""
    from anabranch.errors import UserError  # noqa: PLC0415 - see above

    found = Tally()
    for place, document, seconds in diagnoses(captures, folder):
        name = str(place.relative_to(folder))
        match document:
            case FileNotFoundError():
                found.missing += 1
                continue
            case UserError():
                found.refused[str(document).rpartition(": ")[2]] += 1
            case BaseException():
                found.crashes.append(f"{name}: {document!r}")
            case _:
                found.read += 1
                found.broken += [f"{name}: {line}" for line in violations(document)]
        found.times.append((seconds, place.stat().st_size / 1e6, name))
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Diagnose public captures and check the invariants.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clones", type=Path, help="take the captures out of these clones first")
    options = parser.parse_args()
    captures = listed()
    if options.clones is not None:
        extract(captures, options.clones, options.folder)
    found = tally(captures, options.folder)
    print(
        f"{len(captures):,} listed: {found.read:,} read, {found.refused.total():,} refused, {found.missing:,} missing"
    )
    print(f"{len(found.crashes):,} crashes, {len(found.broken):,} broken invariants")
    for lines in (found.crashes, found.broken):
        print(*(f"  {line}" for line in lines[:MOST_SHOWN]), sep="\n", end="\n" if lines else "")
    for why, count in found.refused.most_common(MOST_SHOWN):
        print(f"  refused {count:,}: {why}")
    if found.times:
        seconds, _, name = max(found.times)
        print(f"longest: {seconds:.2f} s of CPU, {name}")
    large = [(taken / size, name) for taken, size, name in found.times if size >= LEAST_MB]
    if large:
        rate, name = max(large)
        print(f"slowest of at least {LEAST_MB} MB: {rate:.3f} s/MB, {name}")
    return 1 if found.crashes or found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
