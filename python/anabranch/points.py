"""Finished points of a sweep on disk, one small file each, so that an interrupted sweep goes on where it stopped.

A point's file is named by what its result depends on and knows before the run: the scenario's text, what is set over
it, the seed, whether there is a digest, and the build of the engine. What the run has read besides, it says itself: the
point's file lists every file with a hash of its content. A point is used only if all of this still holds and the file
is as we wrote it; otherwise it is made again, and a remark says which and why.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anabranch.build import fingerprint
from anabranch.errors import UserError
from anabranch.files import read_bytes
from anabranch.output import read_manifest, to_json, write_manifest, write_whole

if TYPE_CHECKING:
    from anabranch.sweep import SweepResult

FORMAT = 1
"""Of a point's file."""
FOLDER = "points"
"""Of the points in the directory of results."""
SWEEP_FILE = "sweep.json"
"""What a sweep's directory says of its tables: see :meth:`anabranch.SweepResult.read`."""
MAX_POINT_BYTES = 256 * 1024 * 1024
MOST_REMARKS = 10
"""Points that are named; of more only the number is said."""

Job = tuple[str, str, list[str], "int | None"]
"""A scenario's text, its file's name, what is set over it, and a seed."""


def key(job: Job, *, digest: bool, untrusted: bool = False, build: str | None = None) -> str:
    """A hash of all that a point depends on and that is known before it is made; not of where it is made."""
    text, _, sets, seed = job
    content = json.dumps([FORMAT, fingerprint() if build is None else build, text, sets, seed, digest, untrusted])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


class Points:
    """The points in a directory; in none, if ``directory`` is ``None``.

    Args:
        directory: Where.
        folder: Where the scenario is; what it names is listed as seen from there.
        remark: Called with a sentence for each point that cannot be used.
        content: What a point's summary has at least.
        suffix: Ends the names of the files, before ``.json``.
        encode: Writes a point as JSON.
        checks_files: Whether files that a run has read must still have the same content.
    """

    def __init__(
        self,
        directory: Path | None,
        folder: Path,
        remark: Callable[[str], None] | None = None,
        *,
        content: str = "flows",
        suffix: str = "",
        encode: Callable[[Any], bytes] = to_json,
        checks_files: bool = True,
    ) -> None:
        self.directory = directory
        self.folder = folder
        self.ours: set[str] = set()
        self._remark = remark or (lambda _: None)
        self._remarks = 0
        self._hashes: dict[str, str | None] = {}
        self._content = content
        self._suffix = suffix
        self._encode = encode
        self._checks_files = checks_files

    def read(self, key: str) -> dict[str, Any] | None:
        """The summary of a point; ``None`` for one that is not there, or cannot be used."""
        path = self._path(key)
        if path is None or not path.exists():
            return None
        # Named by a hash of the work: a sweep that was killed wrote it, and could not note it any more.
        self.ours.add(self._name(key))
        try:
            content = json.loads(read_bytes(path, most=MAX_POINT_BYTES))
        except UserError as error:
            self._reject(path, f"cannot be read ({error.message})")
            return None
        except (ValueError, RecursionError):
            self._reject(path, "is not whole JSON")
            return None
        try:
            wrong = _wrong(content, key, self._content)
            # A name that no file can have (half a character, a NUL byte) is a ValueError.
            looks = not wrong and self._checks_files
            changed = [n for n, hashed in content["depends"].items() if self._hash(n) != hashed] if looks else []
        except (ValueError, RecursionError):
            wrong = "has been changed"
        if wrong:
            self._reject(path, wrong)
            return None
        if changed:
            self._reject(path, f"was made with another content of {', '.join(changed)}")
            return None
        return cast("dict[str, Any]", content["summary"])

    def write(self, key: str, summary: Mapping[str, Any], depends: Sequence[tuple[str, str]]) -> None:
        """Keep a point; its file appears whole or not at all."""
        path = self._path(key)
        if path is None:
            return
        point = {
            "format": FORMAT,
            "key": key,
            "build": fingerprint(),
            "depends": {os.path.relpath(name, self.folder): hashed for name, hashed in depends},
            "check": _check(summary),
            "summary": summary,
        }
        write_whole(path, self._encode(point))
        self.ours.add(self._name(key))

    def said(self) -> None:
        """Say of how many points nothing was said."""
        if self._remarks > MOST_REMARKS:
            self._remark(f"{self._remarks - MOST_REMARKS} more points are made again for such reasons")
        self._remarks = 0

    def _reject(self, path: Path, why: str) -> None:
        self._remarks += 1
        if self._remarks <= MOST_REMARKS:
            self._remark(f"{path} {why}; the point is made again")

    def _hash(self, name: str) -> str | None:
        """The hash of a file's content now; each file is read once."""
        from anabranch import _engine

        if name not in self._hashes:
            self._hashes[name] = _engine.file_hash(str(self.folder / name))
        return self._hashes[name]

    def _path(self, key: str) -> Path | None:
        return None if self.directory is None else self.directory / self._name(key)

    def _name(self, key: str) -> str:
        return f"{FOLDER}/{key[:24]}{self._suffix}.json"


class Store(Points):
    """The points of a sweep, with the manifest and the tables of its directory.

    Args:
        directory: Where; nowhere if ``None``.
        scenario: The scenario's file.
        remark: As of :class:`Points`.
    """

    def __init__(self, directory: Path | None, scenario: str, remark: Callable[[str], None] | None = None) -> None:
        super().__init__(directory, Path(scenario).parent, remark)
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            manifest = read_manifest(directory)
            if manifest is None:
                self.note()
            else:
                self.ours.update(manifest.files)

    def note(self) -> None:
        """Write the manifest: what we wrote and nothing else. Another sweep may write here at the same time."""
        if self.directory is not None:
            manifest = read_manifest(self.directory)
            files = self.ours.union(manifest.files if manifest is not None and manifest.kind == "sweep" else ())
            write_manifest(self.directory, "sweep", {f for f in files if (self.directory / f).is_file()})

    def finish(self, result: SweepResult) -> None:
        """Write the tables, what is needed to read them again, and the manifest."""
        import io

        if self.directory is None:
            return
        for name, frame in (("runs.parquet", result.frame), ("table.parquet", result.table())):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd")
            self._add(name, buffer.getvalue())
        self._add("runs.csv", result.frame.write_csv().encode())
        # Last: it describes the tables, which are there then.
        self._add(SWEEP_FILE, to_json(result.to_json()))
        self.note()

    def _add(self, name: str, content: bytes) -> None:
        if self.directory is not None:
            write_whole(self.directory / name, content)
            self.ours.add(name)


def _wrong(content: Any, key: str, part: str) -> str:
    """Why the content of a point's file cannot be used; empty if it can."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return f"is not a point of format {FORMAT}"
    if content.get("key") != key:
        return "is the point of another run"
    depends, summary = content.get("depends"), content.get("summary")
    if not isinstance(depends, dict) or not isinstance(summary, dict) or part not in summary:
        return "lacks a part"
    if content.get("check") != _check(summary):
        return "has been changed"
    return ""


def _check(summary: Mapping[str, Any]) -> str:
    """A hash of a summary's content."""
    text = json.dumps(summary, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
