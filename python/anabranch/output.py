"""Output directories that appear whole or not at all.

Everything is written into a hidden directory beside the target and renamed into place at the end. A directory we
made carries a manifest of what we wrote; only such a directory, holding nothing else, is ever replaced. A symbolic link
to a directory is followed, and stays.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunFailedError, UserError
from anabranch.files import MAX_TEXT_BYTES, read_bytes

if TYPE_CHECKING:
    import polars as pl

MANIFEST = "anabranch.json"


def check_target(target: Path, kind: str) -> None:
    """Refuse a target that holds something we did not write, before any work is done.

    A directory that could not be written shows here as well, not after the work.

    Raises:
        UserError: ``target`` is a file, a directory with foreign content, or cannot be written.
    """
    try:
        exists = target.exists()
        if not exists and target.is_symlink():
            raise UserError(
                f"--out {target} is a symbolic link to {target.readlink()}, which does not exist",
                hint="make that directory, or give --out another place",
            )
        if exists:
            _check_content(target, kind)
    except OSError as error:
        raise _unwritable(target, error) from None
    _check_writable(target, inside=exists and kind == "sweep")


def check_parent(parent: Path) -> None:
    """Refuse a directory for several results that is itself one.

    Raises:
        UserError: ``parent`` is a file, or holds results.
    """
    if parent.exists() and not parent.is_dir():
        raise UserError(f"{parent} is a file; --out needs a directory")
    manifest = read_manifest(parent)
    if manifest is not None:
        raise _of_another(parent, manifest)


def follow(target: Path) -> Path:
    """Where ``target`` leads, through symbolic links."""
    return Path(os.path.realpath(target))


def _check_content(target: Path, kind: str) -> None:
    """Look at what is there, and into directories only where they are ours: a large tree of others takes no time."""
    if not target.is_dir():
        raise UserError(f"{target} is a file; --out needs a directory")
    names = set(os.listdir(target))
    if not names:
        return
    manifest = read_manifest(target)
    if manifest is None:
        raise UserError(
            f"{target} is not empty and was not written by anabranch; it is left as it is",
            hint="give --out a new directory",
        )
    if manifest.get("kind") != kind:
        raise _of_another(target, manifest)
    if kind == "sweep":
        return
    ours = {*manifest.get("files", []), MANIFEST}
    tops = {Path(name).parts[0] for name in ours}
    foreign = names - tops
    if not foreign:
        inside = (p for name in tops for p in (target / name).rglob("*") if not p.is_dir())
        foreign = {str(p.relative_to(target)) for p in inside} - ours
    if foreign:
        raise UserError(
            f"{target} holds files that are not ours ({', '.join(sorted(foreign)[:3])}); it is left as it is",
            hint="move them, or give --out a new directory",
        )


def _of_another(target: Path, manifest: dict[str, Any]) -> UserError:
    return UserError(
        f"{target} holds the results of `anabranch {manifest.get('kind')}`; it is left as it is",
        hint="give --out a new directory",
    )


def _check_writable(target: Path, *, inside: bool) -> None:
    """Make the directory that the results will be written into, and take it away again."""
    made: list[Path] = []
    probe = follow(target) / f".{os.getpid()}.part" if inside else _aside(follow(target))
    try:
        shutil.rmtree(probe, ignore_errors=True)
        missing = [probe]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for directory in reversed(missing):
            directory.mkdir()
            made.append(directory)
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        for directory in reversed(made):
            directory.rmdir()


def _unwritable(target: Path, error: OSError) -> UserError:
    return UserError(f"--out {target}: cannot be written: {error.strerror or error}", hint="give --out another place")


def _aside(target: Path) -> Path:
    return target.parent / f".{target.name}.{os.getpid()}.part"


@contextmanager
def whole_directory(target: Path, kind: str) -> Iterator[Path]:
    """A directory to write into that becomes ``target`` when the block ends well, and vanishes when it does not.

    Raises:
        UserError: ``target`` holds something else, or cannot be written.
        RunFailedError: The disk is full, or fails otherwise.
    """
    check_target(target, kind)
    place = follow(target)
    aside = _aside(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        yield aside
        write_manifest(aside, kind)
        _swap(aside, place)
    except OSError as error:
        raise RunFailedError(f"--out {target}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write one file so that it appears whole: aside, then renamed over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    except OSError as error:
        # Told of the file that was wanted, not of the one beside it.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        aside.unlink(missing_ok=True)


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """A table as a Parquet file. Python writes it, so that a full disk is an :class:`OSError` like any other."""
    import io

    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    path.write_bytes(buffer.getbuffer())


def write_manifest(directory: Path, kind: str, files: Iterable[str] | None = None) -> None:
    """Note in ``directory`` what it is and which files are ours: ``files``, or all where we made the directory."""
    if files is None:
        files = (str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file() and p.name != MANIFEST)
    write_whole(directory / MANIFEST, to_json({"format": 1, "kind": kind, "files": sorted(files)}))


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """The manifest of a directory we wrote; ``None`` if it is somebody else's."""
    try:
        manifest = json.loads(read_bytes(directory / MANIFEST, most=MAX_TEXT_BYTES))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and "kind" in manifest else None


def to_json(value: Any) -> bytes:
    """JSON for people and machines: two spaces, UTF-8, one newline at the end, no NaN."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _swap(aside: Path, target: Path) -> None:
    if not target.exists():
        aside.rename(target)
        return
    old = target.parent / f".{target.name}.{os.getpid()}.old"
    target.rename(old)
    try:
        aside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)
