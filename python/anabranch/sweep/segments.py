"""Append-only files of finished points: no lock, no database, and a union of directories is a store.

A segment is a magic line and blocks. A block has the keys of some points and their contents, compressed together. Every
process appends to a separate segment, so writers need no lock, and the file systems of clusters, on which locks and
shared memory are unreliable, are sufficient. A block that a killed process has half written ends its segment and is
skipped. A block that was damaged later is recognised by its checksum; the following blocks are found by their marker.
"""

from __future__ import annotations

import os
import stat
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anabranch.files.output import POINTS

MAGIC = b"anabranch points 2\n"
SUFFIX = ".points"
KEY_BYTES = 32

MOST_POINTS = 1 << 12
"""Largest number of points in a block: reading one point requires decompressing its block."""
MOST_BYTES = 1 << 20
"""Largest size of the points in a block before compression, unless a single point is larger."""
MOST_BODY = 256 * 1024 * 1024
"""Largest size of a block, before and after compression. A larger one is not ours."""
SYNC_S = 1.0
"""Seconds between flushes to the disk: the work that a power failure may cost."""

_MARKER = b"\xffAB\x02"
_HEAD = struct.Struct("<4sIII")
"""Marker, number of points, bytes of the body, and checksum of these three, the keys and the body."""
_LEVEL = 1


@dataclass(frozen=True)
class Block:
    """The position of a block, and the keys of its points."""

    segment: Path
    body: int
    length: int
    keys: tuple[bytes, ...]


@dataclass(frozen=True)
class Damage:
    """A range of bytes of a segment that is no valid block."""

    segment: Path
    start: int


class Writer:
    """Appends to a separate segment, which is created with the first point."""

    def __init__(self, directory: Path, build: str) -> None:
        self.directory = directory
        self.build = build
        self.path: Path | None = None
        self._file = -1
        self._size = 0
        self._synced = time.monotonic()
        self._dirty = False

    def append(self, points: Sequence[tuple[bytes, bytes]]) -> list[Block]:
        """Append points, each a key and one line of content.

        Raises:
            OSError: The disk is full, or fails otherwise.
        """
        made = []
        for part in _parts(points):
            if self.path is None:
                self._create()
            block = _pack(part)
            start = self._size
            self._write(block)
            keys = tuple(key for key, _ in part)
            body = start + _HEAD.size + KEY_BYTES * len(keys)
            made.append(Block(self._segment(), body, self._size - body, keys))
        if self._dirty and time.monotonic() - self._synced >= SYNC_S:
            self.sync()
        return made

    def sync(self) -> None:
        """Flush to the disk."""
        if self._dirty:
            os.fsync(self._file)
            self._dirty = False
        self._synced = time.monotonic()

    def close(self) -> None:
        """Flush to the disk; a later point begins another segment."""
        if self.path is not None:
            self.sync()
            os.close(self._file)
        self.path, self._file, self._size = None, -1, 0

    def _segment(self) -> Path:
        if self.path is None:
            raise ValueError("no segment was begun")
        return self.path

    def _create(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{self.build}-{os.urandom(8).hex()}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self.path, self._size = path, 0
        self._write(MAGIC)
        self._sync_directory()

    def _sync_directory(self) -> None:
        folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        try:
            while left:
                written = os.write(self._file, left)
                self._size += written
                left = left[written:]
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(self.path)) from None
        self._dirty = True


def scan(segment: Path) -> Iterator[Block | Damage]:
    """The valid blocks and the damaged ranges of a segment; a truncated last block is skipped.

    Raises:
        OSError: It cannot be read.
    """
    if not stat.S_ISREG(os.stat(segment).st_mode):
        yield Damage(segment, 0)
        return
    with segment.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC[:size]:
            yield Damage(segment, 0)
            return
        at = len(MAGIC)
        while at < size:
            file.seek(at)
            head = file.read(_HEAD.size)
            count, length = _lengths(head)
            end = at + _HEAD.size + KEY_BYTES * count + length
            if count and end <= size:
                rest = file.read(end - at - _HEAD.size)
                if _checksum(head, rest) == head[-4:]:
                    keys = tuple(rest[i * KEY_BYTES : (i + 1) * KEY_BYTES] for i in range(count))
                    yield Block(segment, end - length, length, keys)
                    at = end
                    continue
            found = _next_marker(file, at + 1, size)
            # Nothing follows a block that a killed process has half written.
            torn = found == size and (len(head) < _HEAD.size or (count > 0 and end > size))
            if not torn:
                yield Damage(segment, at)
            at = found


def read(block: Block) -> list[bytes]:
    """The contents of the points of a block, in the order of its keys; empty if it has changed since.

    Raises:
        OSError: The segment cannot be read.
    """
    with block.segment.open("rb") as file:
        file.seek(block.body)
        body = file.read(block.length)
    inflate = zlib.decompressobj()
    try:
        lines = inflate.decompress(body, MOST_BODY).split(b"\n")
    except zlib.error:
        return []
    return lines if inflate.eof and len(lines) == len(block.keys) else []


def segments(directory: Path, build: str | None = None) -> list[Path]:
    """The segments in a directory, of one build of the engine or of all."""
    try:
        names = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = ((name, POINTS.fullmatch(name)) for name in names)
    return [directory / name for name, match in found if match and build in (None, match[1])]


def _parts(points: Sequence[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    part: list[tuple[bytes, bytes]] = []
    size = 0
    for key, content in points:
        if part and (len(part) == MOST_POINTS or size + len(content) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append((key, content))
        size += len(content)
    if part:
        yield part


def _pack(points: Sequence[tuple[bytes, bytes]]) -> bytes:
    body = zlib.compress(b"\n".join(content for _, content in points), _LEVEL)
    rest = b"".join(key for key, _ in points) + body
    head = _HEAD.pack(_MARKER, len(points), len(body), 0)
    return head[:-4] + _checksum(head, rest) + rest


def _checksum(head: bytes, rest: bytes) -> bytes:
    return zlib.crc32(rest, zlib.crc32(head[:-4])).to_bytes(4, "little")


def _lengths(head: bytes) -> tuple[int, int]:
    """Number of points and bytes of the body in a block's head; no points if it is invalid."""
    if len(head) < _HEAD.size:
        return 0, 0
    marker, count, length, _ = _HEAD.unpack(head)
    return (count, length) if marker == _MARKER and count <= MOST_POINTS and length <= MOST_BODY else (0, 0)


def _next_marker(file: BinaryIO, at: int, size: int) -> int:
    """The offset at which the next block may begin; ``size`` if there is none."""
    while at < size:
        file.seek(at)
        chunk = file.read(MOST_BYTES)
        found = chunk.find(_MARKER)
        if found >= 0:
            return at + found
        if len(chunk) < len(_MARKER):
            return size
        at += len(chunk) - len(_MARKER) + 1
    return size
