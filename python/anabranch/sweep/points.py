"""Finished points on disk, each under a hash of its inputs, so that no point is made twice.

A point's key is a hash of the inputs that are known before the run: the scenario's text, the changes to it, the seed,
whether there is a digest, and the build of the engine. The run reports the files that it read: the point lists every
file with a hash of its content. A point is used only if all of this still holds and its block is undamaged; otherwise
it is made again, and a remark gives the reason. Sweeps, studies and comparisons have the same keys: one directory may
serve all of them. :mod:`anabranch.sweep.segments` implements the files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from anabranch.files import stored
from anabranch.files.files import parse_json
from anabranch.files.output import check_target, follow, read_manifest, write_manifest
from anabranch.sweep import segments
from anabranch.sweep.build import fingerprint
from anabranch.sweep.segments import Block, Damage

FORMAT = 2
"""Version of the stored form of a point."""
FOLDER = "points"
"""Folder of the segments in a directory of results."""
MOST_REMARKS = 10
"""Largest number of points reported individually; the others are only counted."""

_OPEN_BLOCKS = 8
"""Largest number of decompressed blocks in memory. Points are mostly read in the order in which they were written."""

T = TypeVar("T")


class _Line(TypedDict):
    depends: dict[str, str]
    summary: Any


Job = tuple[str, str, list[str], "int | None"]
"""A scenario's text, its file's name, the changes to it, and a seed."""
Depends = Sequence[tuple[str, str]]
"""Files that a run read, each with a hash of its content."""


class Keys:
    """The keys of the points of one scenario. They do not depend on the location of the scenario or of the points."""

    def __init__(self, text: str, *, digest: bool, untrusted: bool = False, build: str | None = None) -> None:
        self._common = _sha256([FORMAT, fingerprint() if build is None else build, text, digest, untrusted])

    def of(self, sets: Sequence[str], seed: int | None, *more: Any) -> bytes:
        """The key of a run; ``more`` describes the data stored in addition to its summary."""
        one = self._common.copy()
        one.update(json.dumps([list(sets), seed, *more]).encode("utf-8", "surrogatepass"))
        return one.digest()


def build_name(build: str | None = None) -> str:
    """A short name for a build of the engine, by default this one."""
    return hashlib.sha256((fingerprint() if build is None else build).encode()).hexdigest()[:8]


class Points:
    """The points in a directory; no points if ``directory`` is ``None``.

    Args:
        directory: The directory; its folder ``points`` contains the segments.
        folder: The folder of the scenario; files are listed relative to it.
        remark: Called with a sentence for each unusable point.
        build: The build of the engine that made the points; default: this one.
        checks_files: Whether the files that a run read must be unchanged.
    """

    def __init__(
        self,
        directory: Path | None,
        folder: Path,
        remark: Callable[[str], None] | None = None,
        *,
        build: str | None = None,
        checks_files: bool = True,
    ) -> None:
        self.directory = directory
        self.folder = folder
        self._remark = remark or (lambda _: None)
        self._remarks = 0
        self.remedy = "it is made again"
        """The end of a remark."""
        self._hashes: dict[str, str | None] = {}
        self._checks_files = checks_files
        self._build = build_name(build)
        self._writer = None if directory is None else segments.Writer(directory / FOLDER, self._build)
        self._blocks: list[Block] | None = None
        # Block and index in one number: a million of them take a third of the memory of pairs.
        self._where: dict[bytes, int] = {}
        # Two processes made the same point, or it was made again: any usable copy will do.
        self._again: dict[bytes, list[int]] = {}
        self._open: OrderedDict[int, list[bytes]] = OrderedDict()

    def is_empty(self) -> bool:
        """Whether no point is stored."""
        return not self._index()

    def read(self, key: bytes, shape: type[T]) -> T | None:
        """The stored content of a point; ``None`` if it does not exist or is unusable."""
        found = self.entry(key, shape)
        return None if found is None else found[0]

    def entry(self, key: bytes, shape: type[T]) -> tuple[T, dict[str, str]] | None:
        """The stored content of a point, and the files that its run read, relative to the scenario.

        Args:
            key: The point.
            shape: The type of the content; for a run, its summary.
        """
        at = self._index().get(key)
        if at is None:
            return None
        why = ""
        for one in (at, *self._again.get(key, ())):
            content, why = self._read(one, shape)
            if content is not None:
                return content
        self.reject(f"a point in {self._all()[at // segments.MOST_POINTS].segment} {why}; {self.remedy}")
        return None

    def _read(self, at: int, shape: type[T]) -> tuple[tuple[T, dict[str, str]] | None, str]:
        """The stored content at a position, or the reason why it is unusable."""
        number, place = divmod(at, segments.MOST_POINTS)
        lines = self._lines(number)
        if place >= len(lines):
            return None, "cannot be read"
        try:
            content = parse_json(lines[place], "it")
            stored.check(content, _Line)
            depends, summary = content["depends"], content["summary"]
            stored.check(summary, shape)
            # A name that no file can have (a lone surrogate, a NUL byte) raises a ValueError.
            looked_at = depends.items() if self._checks_files else ()
            changed = [name for name, hashed in looked_at if self._hash(name) != hashed]
        except stored.WrongShapeError as error:
            return None, f"is not as it was written ({error})"
        except (ValueError, RecursionError):
            return None, "cannot be read"
        if changed:
            return None, f"was made with another content of {', '.join(changed)}"
        return (summary, depends), ""

    def write(self, points: Iterable[tuple[bytes, str | bytes, Depends]]) -> None:
        """Store points, each as key, JSON, and the files that it depends on.

        Raises:
            OSError: The disk is full, or fails otherwise.
        """
        if self._writer is None:
            return
        written = self._writer.append([(key, self._line(summary, depends)) for key, summary, depends in points])
        for block in written if self._blocks is not None else ():
            self._add(block)

    def close(self) -> None:
        """Flush the stored points to disk."""
        if self._writer is not None:
            self._writer.close()

    def names(self) -> list[str]:
        """The segments, relative to the directory."""
        if self.directory is None:
            return []
        return [f"{FOLDER}/{path.name}" for path in segments.segments(self.directory / FOLDER)]

    def said(self) -> None:
        """Report the number of unusable points without a separate report."""
        if self._remarks > MOST_REMARKS:
            self._remark(f"{self._remarks - MOST_REMARKS} more points are made again for such reasons")
        self._remarks = 0

    def _line(self, summary: str | bytes, depends: Depends) -> bytes:
        raw = summary.encode() if isinstance(summary, str) else summary
        listed = {os.path.relpath(name, self.folder): hashed for name, hashed in depends}
        head = json.dumps(listed).encode() if listed else b"{}"
        return b'{"depends":' + head + b',"summary":' + raw.replace(b"\n", b" ") + b"}"

    def _index(self) -> dict[bytes, int]:
        self._all()
        return self._where

    def _all(self) -> list[Block]:
        """The blocks of all segments that exist at the first call, and those written since."""
        if self._blocks is not None:
            return self._blocks
        blocks: list[Block] = []
        self._blocks = blocks
        for segment in segments.segments(self.directory / FOLDER, self._build) if self.directory is not None else ():
            try:
                for found in segments.scan(segment):
                    if isinstance(found, Damage):
                        self.reject(f"{segment} is damaged at byte {found.start}; its points are made again")
                    else:
                        self._add(found)
            except OSError as error:
                self.reject(f"{segment} cannot be read ({error.strerror or error}); its points are made again")
        return blocks

    def _add(self, block: Block) -> None:
        blocks = self._all()
        first = len(blocks) * segments.MOST_POINTS
        blocks.append(block)
        for at, key in enumerate(block.keys, first):
            if self._where.setdefault(key, at) != at:
                self._again.setdefault(key, []).append(at)

    def _lines(self, number: int) -> list[bytes]:
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        block = self._all()[number]
        try:
            lines = segments.read(block)
        except OSError:
            lines = []
        self._open[number] = lines
        if len(self._open) > _OPEN_BLOCKS:
            self._open.popitem(last=False)
        return lines

    def reject(self, remark: str) -> None:
        """Report why a point is unusable; points beyond :data:`MOST_REMARKS` are only counted."""
        self._remarks += 1
        if self._remarks <= MOST_REMARKS:
            self._remark(remark)

    def _hash(self, name: str) -> str | None:
        """The current hash of a file's content; each file is read once."""
        from anabranch import _engine

        if name not in self._hashes:
            self._hashes[name] = _engine.file_hash(str(self.folder / name))
        return self._hashes[name]


def shared(directory: str | Path, folder: Path, remark: Callable[[str], None] | None = None) -> Points:
    """The points in a directory shared by sweeps, studies and comparisons; it is created if necessary.

    Raises:
        UserError: It holds something else, or cannot be written.
    """
    check_target(Path(directory), "store")
    place = follow(Path(directory))
    place.mkdir(parents=True, exist_ok=True)
    if read_manifest(place) is None:
        write_manifest(place, "store", ())
    return Points(place, folder, remark)


def _sha256(content: Any) -> hashlib._Hash:
    """A hash that begins with ``content``."""
    return hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass"))
