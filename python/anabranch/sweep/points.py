"""Finished points on disk: each under a hash of what it is made of, so that nothing is made twice.

A point's key is a hash of what its result depends on and that is known before the run: the scenario's text, what is set
over it, the seed, whether there is a digest, and the build of the engine. The run itself says what it has read besides:
the point lists every file with a hash of its content. A point is used only if all of this still holds and its block is
as we wrote it; otherwise it is made again, and a remark says why. Sweeps, studies and comparisons have the same keys:
one directory may serve all of them. :mod:`anabranch.sweep.segments` has the files.
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
"""Of a point."""
FOLDER = "points"
"""Of the segments in a directory of results."""
MOST_REMARKS = 10
"""Points that are named; of more only the number is said."""

_OPEN_BLOCKS = 8
"""Decompressed at a time. Points are mostly read in the order in which they were written."""

T = TypeVar("T")


class _Line(TypedDict):
    depends: dict[str, str]
    summary: Any


Job = tuple[str, str, list[str], "int | None"]
"""A scenario's text, its file's name, what is set over it, and a seed."""
Depends = Sequence[tuple[str, str]]
"""Files that a run has read, with a hash of the content of each."""


class Keys:
    """The keys of the points of one scenario: not of where the scenario is, nor of where its points are made."""

    def __init__(self, text: str, *, digest: bool, untrusted: bool = False, build: str | None = None) -> None:
        self._common = _sha256([FORMAT, fingerprint() if build is None else build, text, digest, untrusted])

    def of(self, sets: Sequence[str], seed: int | None, *more: Any) -> bytes:
        """The key of a run; ``more`` is what is kept of it besides its summary."""
        one = self._common.copy()
        one.update(json.dumps([list(sets), seed, *more]).encode("utf-8", "surrogatepass"))
        return one.digest()


def build_name(build: str | None = None) -> str:
    """A build of the engine, this one when left out, in few characters."""
    return hashlib.sha256((fingerprint() if build is None else build).encode()).hexdigest()[:8]


class Points:
    """The points in a directory; in none, if ``directory`` is ``None``.

    Args:
        directory: Where; its folder ``points`` has the segments.
        folder: Where the scenario is; what it names is listed as seen from there.
        remark: Called with a sentence for what cannot be used.
        build: Of the engine that has made the points; this one when left out.
        checks_files: Whether files that a run has read must still have the same content.
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
        # A number says block and place in it: a million of them take a third of what pairs take.
        self._where: dict[bytes, int] = {}
        # Two processes have made one point, or it was made again: any that can be used will do.
        self._again: dict[bytes, list[int]] = {}
        self._open: OrderedDict[int, list[bytes]] = OrderedDict()

    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not self._index()

    def read(self, key: bytes, shape: type[T]) -> T | None:
        """The stored content of a point; ``None`` for one that is not there, or cannot be used."""
        found = self.entry(key, shape)
        return None if found is None else found[0]

    def entry(self, key: bytes, shape: type[T]) -> tuple[T, dict[str, str]] | None:
        """The stored content of a point, and the files that its run has read, as seen from the scenario.

        Args:
            key: The point.
            shape: The type of the content: of a run, its summary.
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
        """The stored content at a place, or why it cannot be used."""
        number, place = divmod(at, segments.MOST_POINTS)
        lines = self._lines(number)
        if place >= len(lines):
            return None, "cannot be read"
        try:
            content = parse_json(lines[place], "it")
            stored.check(content, _Line)
            depends, summary = content["depends"], content["summary"]
            stored.check(summary, shape)
            # A name that no file can have (half a character, a NUL byte) is a ValueError.
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
        """Keep points, each as key, JSON, and files that it depends on.

        Raises:
            OSError: The disk is full, or fails otherwise.
        """
        if self._writer is None:
            return
        written = self._writer.append([(key, self._line(summary, depends)) for key, summary, depends in points])
        for block in written if self._blocks is not None else ():
            self._add(block)

    def close(self) -> None:
        """Write through to the disk what was kept."""
        if self._writer is not None:
            self._writer.close()

    def names(self) -> list[str]:
        """The segments, as seen from the directory."""
        if self.directory is None:
            return []
        return [f"{FOLDER}/{path.name}" for path in segments.segments(self.directory / FOLDER)]

    def said(self) -> None:
        """Say of how many points nothing was said."""
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
        """The blocks of all segments that are there at the first call, and those written since."""
        if self._blocks is not None:
            return self._blocks
        blocks: list[Block] = []
        self._blocks = blocks
        for segment in segments.segments(self.directory / FOLDER, self._build) if self.directory is not None else ():
            try:
                for found in segments.scan(segment):
                    if isinstance(found, Damage):
                        self.reject(f"{segment} is damaged at byte {found.start}; what was there is made again")
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
        """Say why a point cannot be used; beyond :data:`MOST_REMARKS` they are counted."""
        self._remarks += 1
        if self._remarks <= MOST_REMARKS:
            self._remark(remark)

    def _hash(self, name: str) -> str | None:
        """The hash of a file's content now; each file is read once."""
        from anabranch import _engine

        if name not in self._hashes:
            self._hashes[name] = _engine.file_hash(str(self.folder / name))
        return self._hashes[name]


def shared(directory: str | Path, folder: Path, remark: Callable[[str], None] | None = None) -> Points:
    """The points in a directory that sweeps, studies and comparisons share, which is made if need be.

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
    """A hash that has begun with ``content``."""
    return hashlib.sha256(json.dumps(content).encode("utf-8", "surrogatepass"))
