"""Output directories that are replaced as a whole.

Results are written into a hidden directory beside the target. At the end one atomic exchange (``renameat2`` with
``RENAME_EXCHANGE``) swaps the two, so that the target always has either the old results or the new ones. File systems
without the exchange (NFS, some FUSE) need two renames, between which the target is missing for a moment. A directory
made by this package carries a manifest of its files; only such a directory, without other files, is ever replaced. A
symbolic link to a directory is followed, and stays.

Some directories must stay in place: a mount point (a container's volume), one whose parent is not writable, and the
working directory of a process (``--out .``, another shell). The hidden directory is then inside, and its files are
moved out individually. Meanwhile the manifest marks the results as incomplete; the manifest of the new ones comes last.

A killed process leaves its hidden directory, whose name identifies the process (:mod:`anabranch.files.owner`); the next
command that writes beside it removes it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from anabranch.errors import RunFailedError, UserError
from anabranch.files import owner
from anabranch.files.output_file import write_whole
from anabranch.files.stored import StoredKind
from anabranch.interrupt import whole_step
from anabranch.text.spoken import argument

MANIFEST = "anabranch.json"

POINTS = re.compile(r"([0-9a-f]{8})-[0-9a-f]{16}\.points")
"""Name of a file of finished runs in ``points``: the build of the engine, and a distinguishing hash."""

KINDS_THAT_GROW = ("sweep", "store", "stress")
"""Results that later calls extend, so that their directory is not replaced as a whole."""

KINDS_WITH_POINTS = ("study", "evaluate")
"""Results that are replaced as a whole, and also keep finished runs."""

LOST_AND_FOUND = "lost+found"
"""A directory that file systems create in their root."""


@dataclass(frozen=True)
class Manifest:
    """Manifest of a directory of results: the command that wrote it, and relative paths of its files."""

    kind: str
    files: tuple[str, ...]
    is_complete: bool = True
    """False while files are being moved in, and after an interruption of this."""


def check_target(target: Path, kind: str) -> None:
    """Refuse a target with foreign content, before any work is done.

    A directory that cannot be written is refused here as well, not after the work.

    Raises:
        UserError: ``target`` is a file, a directory with foreign content, or cannot be written.
    """
    try:
        place = follow(target)
        owner.remove_dead(place.parent)
        exists = target.exists()
        stays = exists and (kind in KINDS_THAT_GROW or _stays(place))
        if stays:
            owner.remove_dead(place)
        if not exists and target.is_symlink():
            raise UserError(
                f"{_argument(kind, target)} is a symbolic link to {target.readlink()}, which does not exist",
                hint="make that directory, or choose another place",
            )
        if exists:
            _check_content(target, kind)
    except OSError as error:
        raise _unwritable(target, kind, error) from None
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        # The name has a NUL byte or a surrogate.
        raise UserError(f"{_argument(kind, repr(str(target)))} cannot be the name of a directory") from None
    _check_writable(target, kind, inside=stays)


def check_parent(parent: Path) -> None:
    """Refuse a directory for several results that is itself one.

    Raises:
        UserError: ``parent`` is a file, or holds results.
    """
    if parent.exists() and not parent.is_dir():
        raise UserError(f"{argument('out', parent)} is {_what(parent)}; a directory was expected")
    manifest = read_manifest(parent)
    if manifest is not None:
        raise _of_another(parent, manifest)


def check_folder(folder: Path, name: str) -> None:
    """Check, before any work, a directory for single files, which may hold other files and may have to be made.

    Args:
        folder: The directory.
        name: The argument that names it.

    Raises:
        UserError: It is no directory, or cannot be written.
    """
    told = argument(name, folder)
    try:
        if folder.is_symlink() and not folder.exists():
            raise UserError(f"{told} is a symbolic link to {folder.readlink()}, which does not exist")
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{told} is {_what(folder)}; a directory was expected")
    except OSError as error:
        raise UserError(f"{told}: cannot be written: {error.strerror or error}") from None
    _check_writable(folder, name, inside=folder.exists())


def follow(target: Path) -> Path:
    """The target of a path, with symbolic links resolved."""
    return Path(os.path.realpath(target))


def _check_content(target: Path, kind: str, where: Path | None = None) -> None:
    """Check the content, and enter directories only if they are ours: a large foreign tree takes no time.

    The content of ``target`` is at ``where`` if it has been moved.
    """
    name, target = target, where or target
    if not target.is_dir():
        raise UserError(f"{_argument(kind, name)} is {_what(target)}; a directory was expected")
    # Another process of this package may be writing here now.
    names = {name for name in os.listdir(target) if not owner.is_temporary(name)}
    if LOST_AND_FOUND in names and _is_mount(target):
        names.remove(LOST_AND_FOUND)
    if not names:
        return
    manifest = read_manifest(target)
    if manifest is None:
        raise UserError(
            f"{name} is not empty and was not written by anabranch; it is left as it is",
            hint="choose a new directory",
        )
    if manifest.kind != kind:
        raise _of_another(name, manifest)
    if kind in KINDS_THAT_GROW:
        return
    ours = {*manifest.files, MANIFEST}
    tops = {PurePosixPath(file).parts[0] for file in ours} | ({"points"} if kind in KINDS_WITH_POINTS else set())
    foreign = names - tops
    if not foreign:
        foreign = _foreign_inside(target, names, kind, ours)
    if foreign:
        raise UserError(
            f"{name} holds files that are not ours ({', '.join(sorted(foreign)[:3])}); it is left as it is",
            hint="move them, or choose a new directory",
        )


def _foreign_inside(target: Path, names: Iterable[str], kind: str, ours: set[str]) -> set[str]:
    """Files that the manifest does not list, and entries of listed names that are neither file nor directory.

    Links, pipes and devices are foreign: this package makes none, and a replacement would remove
    them.
    """
    foreign = set()
    for folder, folders, files in os.walk(target):
        is_top = folder == str(target)
        if is_top:
            folders[:] = [name for name in folders if name in names]
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *linked]:
            if is_top and name not in names:
                continue
            path = Path(folder, name)
            is_ours = str(path.relative_to(target)) in ours or (kind in KINDS_WITH_POINTS and _is_point(path))
            if not is_ours or not stat.S_ISREG(path.lstat().st_mode):
                foreign.add(str(path.relative_to(target)))
    return foreign


def _is_point(path: Path) -> bool:
    """Whether a file has finished runs of a study; a killed study did not list it in the manifest."""
    named = POINTS.fullmatch(path.name) is not None or owner.is_temporary(path.name)
    return named and path.parent.name == "points"


def _argument(kind: str, value: object = None) -> str:
    """The caller's name of the directory: ``directory`` of a result's ``write``, ``out`` of a sweep."""
    names = {"sweep": "out", "stress": "out", "store": "store", "keep": "keep", "save_to": "save_to"}
    return argument(names.get(kind, "directory"), value)


def _what(path: Path) -> str:
    return "a file" if path.is_file() else "not a directory"


def _of_another(target: Path, manifest: Manifest) -> UserError:
    return UserError(
        f"{target} holds the results of `anabranch {manifest.kind}`; it is left as it is",
        hint="choose a new directory",
    )


def _check_writable(target: Path, kind: str, *, inside: bool) -> None:
    """Make the directory for the results, and remove it again."""
    made: list[Path] = []
    probe = owner.beside(follow(target) / MANIFEST if inside else follow(target))
    try:
        missing = [probe]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for directory in reversed(missing):
            directory.mkdir()
            made.append(directory)
    except OSError as error:
        raise _unwritable(target, kind, error) from None
    finally:
        for directory in reversed(made):
            directory.rmdir()
        owner.forget(probe)


def _unwritable(target: Path, kind: str, error: OSError) -> UserError:
    return UserError(
        f"{_argument(kind, target)}: cannot be written: {error.strerror or error}",
        hint="choose another place",
    )


@contextmanager
def whole_directory(target: Path, kind: str) -> Iterator[Path]:
    """A directory to write into: it becomes ``target`` after success, and is removed after a failure.

    Raises:
        UserError: ``target`` holds something else, or cannot be written.
        RunFailedError: The disk is full, or fails otherwise.
    """
    check_target(target, kind)
    place = follow(target)
    aside = owner.beside(place / MANIFEST if _stays(place) else place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        yield aside
        write_manifest(aside, kind)
        _replace(place, aside, kind)
    except OSError as error:
        raise RunFailedError(f"{_argument(kind, target)}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        owner.forget(aside)


def write_manifest(directory: Path, kind: str, files: Iterable[str] | None = None, *, is_complete: bool = True) -> None:
    """Write the manifest of ``directory`` with its kind and ``files``; by default all its files."""
    if files is None:
        files = (str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file() and p.name != MANIFEST)
    content: dict[str, object] = {"format": 1, "kind": kind, "files": sorted(files)}
    if not is_complete:
        content["complete"] = False
    write_whole(directory / MANIFEST, to_json(content))


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of a directory of results; ``None`` if it is foreign or malformed."""
    try:
        content = _MANIFEST.read(directory / MANIFEST)
    except UserError:
        return None
    files = content.get("files", [])
    if not all(map(_is_inside, files)):
        return None
    return Manifest(content["kind"], tuple(files), content.get("complete") is not False)


class _ManifestKeys(TypedDict):
    kind: str


class _ManifestFile(_ManifestKeys, total=False):
    files: list[str]
    complete: bool


_MANIFEST = StoredKind(_ManifestFile, "the manifest of results")


def _is_inside(name: str) -> bool:
    """Whether ``name`` is a file's relative path inside a directory, in the form of manifests."""
    if not name or "\0" in name:
        return False
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts


def to_json(value: Any) -> bytes:
    """JSON for people and machines: two spaces, UTF-8, one final newline, no NaN."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _replace(target: Path, made: Path, kind: str) -> None:
    """Put ``made`` in the place of ``target``; the previous content is then at ``made``, to be removed."""
    if not os.path.lexists(target):
        made.rename(target)
        return
    if not _stays(target):
        try:
            _change_places(target, made, kind)
            return
        except OSError as error:
            # A mount point that no table of mounts lists, or a directory of an overlay's lower
            # layer.
            if error.errno not in (errno.EBUSY, errno.EXDEV):
                raise
    _move_in(target, made, kind)


def _change_places(target: Path, made: Path, kind: str) -> None:
    """Exchange two directories, by two renames if the file system has no exchange."""
    from anabranch import _engine

    if _engine.exchange(str(made), str(target)):
        try:
            # The content may have changed since the check before the run.
            _check_content(target, kind, made)
        except UserError:
            _engine.exchange(str(made), str(target))
            raise
        return
    _check_content(target, kind)
    old = owner.beside(target)
    with whole_step():
        target.rename(old)
        try:
            made.rename(target)
        except OSError:
            old.rename(target)
            raise
    shutil.rmtree(old)
    owner.forget(old)


def _move_in(target: Path, made: Path, kind: str) -> None:
    """Replace the files in ``target`` by the files of ``made``; directories of ``target`` in use stay."""
    _check_content(target, kind)
    before, after = read_manifest(target), read_manifest(made)
    new = set(after.files) if after is not None else set()
    old = set(before.files) if before is not None else set()
    with whole_step():
        write_manifest(target, kind, old | new, is_complete=False)
        for name in old - new:
            (target / name).unlink(missing_ok=True)
        kept = {parent for name in new for parent in (target / name).parents}
        for directory in sorted({p for name in old for p in (target / name).parents} - kept, reverse=True):
            if target in directory.parents and directory.is_dir():
                directory.rmdir()
        for name in sorted(new):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            _move(made / name, target / name)
        _move(made / MANIFEST, target / MANIFEST)


def _move(source: Path, target: Path) -> None:
    """Rename a file over another; copy it first if the file systems differ."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        write_whole(target, source.read_bytes())


def _stays(place: Path) -> bool:
    """Whether the directory at ``place`` has to stay, so that only its content can be replaced."""
    if not place.is_dir():
        return False
    return _is_mount(place) or not os.access(place.parent, os.W_OK | os.X_OK) or _is_stood_in(place)


def _is_mount(place: Path) -> bool:
    if os.path.ismount(place):
        return True
    try:
        # A bind mount within one file system looks like any other directory.
        mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    points = (fields[4] for line in mounts if len(fields := line.split(b" ")) > 4)
    return os.fsencode(place) in {re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), p) for p in points}


def _is_stood_in(place: Path) -> bool:
    """Whether this process, or another that may be inspected, has its working directory here or below."""
    try:
        here = [os.getcwd(), *_working_directories()]
    except FileNotFoundError:
        here = _working_directories()
    return any(place == path or place in path.parents for path in map(Path, here))


def _working_directories() -> list[str]:
    """Working directories of all processes that may be inspected; none without ``/proc``."""
    found = []
    try:
        with os.scandir("/proc") as processes:
            for process in processes:
                if process.name.isdigit():
                    try:
                        found.append(os.readlink(f"/proc/{process.name}/cwd"))
                    except OSError:
                        continue
    except OSError:
        return []
    return found
