"""Writing of files that an option or an argument names.

The kind of the target decides how it is written:

- absent or regular: the content goes into a hidden file in the same directory, which takes the target's place in one
  step (``renameat2``). A full disk or a signal leaves the earlier content. Mode, owner and extended attributes stay;
  another hard link keeps the earlier content;
- symbolic link: the file at its end is written, there or not yet, and the link stays;
- pipe (FIFO), character device, descriptor of this process (``/dev/stdout``, ``/dev/fd/3``): opened and written, never
  replaced. A terminal gets no control characters;
- directory, socket: refused. A block device holds content that anabranch did not make.

Content that anabranch did not make is replaced only with ``--force``. The content and kind are checked before the work,
to refuse early, and again in the step that replaces: two names are exchanged, and exchanged back if the displaced file
is not one that may be replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from anabranch.errors import RunFailedError, UserError
from anabranch.files import owner
from anabranch.files.files import read_head
from anabranch.files.output_target import Kind, Target, find, identity_of
from anabranch.interrupt import whole_step
from anabranch.text import shown
from anabranch.text.spoken import in_command

HEAD_BYTES = 256 * 1024
"""First bytes of a file that show who made it: a pcapng section header's options have at most 64 KiB each."""

_FORCE = {True: "--force", False: "force=True"}
_MOST_TRIES = 8
"""Times that the target may appear and vanish during the replacement."""
_CHUNK = 1 << 20
_REFUSALS = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EBUSY, errno.ENXIO, errno.ENAMETOOLONG,
     errno.ELOOP, errno.EISDIR, errno.ETXTBSY}
)  # fmt: skip
"""Errors of the place. Any other error (a full disk) is a failure of the work."""


@dataclass(frozen=True)
class OutputFile:
    """A file that an option or an argument names; :func:`output_file` makes it.

    Attributes:
        given: The path as it was given.
        name: The option as it was given, if the path is a part of it: messages begin with it.
        target: The target of the path.
        is_ours: Whether anabranch made the content that begins with these bytes; ``None`` if content has no mark.
        force: Foreign content is also replaced; ``None`` if the command has no ``--force``.
    """

    given: Path
    name: str
    target: Target
    is_ours: Callable[[bytes], bool] | None = None
    force: bool | None = None

    @property
    def is_stream(self) -> bool:
        """Whether it is written directly, not replaced."""
        return self.target.kind in (Kind.STREAM, Kind.DESCRIPTOR)

    @property
    def is_standard_output(self) -> bool:
        """Whether the content and the printed text would be one stream."""
        if not self.is_stream:
            return False
        try:
            there = os.stat(self.given) if self.target.descriptor is None else os.fstat(self.target.descriptor)
            printed, null = os.fstat(1), os.stat(os.devnull)
        except OSError:
            return False
        return os.path.samestat(there, printed) and there.st_rdev != null.st_rdev

    def write(self, content: bytes | Iterable[bytes]) -> bool:
        """Write the file. Returns whether the reader of a stream took all of it.

        Raises:
            UserError: The place cannot be written, or has changed since it was checked.
            RunFailedError: The disk is full, or fails otherwise.
        """
        parts = [content] if isinstance(content, bytes) else content
        with self._explained():
            if self.is_stream:
                return self._stream(parts)
            with _aside_file(self.target.place, self.target.place, parts) as aside:
                _put(aside, self.target.place, self._check_content)
        return True

    def fill(self, make: Callable[[Path], None]) -> bool:
        """Write content that ``make`` writes into a temporary file, whose path it receives."""
        with self._explained():
            if self.is_stream:
                with _aside_file(Path(tempfile.gettempdir()) / "content", None) as made:
                    make(made)
                    with made.open("rb") as file:
                        return self._stream(iter(lambda: file.read(_CHUNK), b""))
            with _aside_file(self.target.place, self.target.place) as aside:
                make(aside)
                _put(aside, self.target.place, self._check_content)
        return True

    def check(self) -> None:
        """Refuse foreign content, and a place that cannot be written, before any work is done.

        Raises:
            UserError: The content or the place is unsuitable.
        """
        place, kind = self.target.place, self.target.kind
        if kind is Kind.DESCRIPTOR:
            return
        with self._explained():
            if kind is Kind.STREAM:
                if not os.access(place, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                return
            if kind is Kind.REGULAR:
                self._check_content(place)
                if not os.access(place, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if not place.parent.is_dir():
                raise _refusal(self.given, self.name, f"the directory {self._shown_parent()} does not exist")
            owner.remove_dead(place.parent)
            with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{owner.PREFIX}"):
                pass

    def _shown_parent(self) -> Path:
        """The directory as the user gave it, unless a link leads elsewhere."""
        return self.given.parent if not self.given.is_symlink() else self.target.place.parent

    def _check_content(self, path: Path) -> None:
        """Refuse to replace foreign content at ``path``, the present or previous place of the target.

        Raises:
            UserError: It is foreign, or no regular file.
        """
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            self._refuse_change()
        if self.force or found.st_size == 0:
            return
        if self.is_ours is not None and self.is_ours(read_head(path, HEAD_BYTES)):
            return
        why = "was not made by anabranch" if self.is_ours is not None else "has another content"
        raise UserError(
            f"{_start(self.name)}{self.given} exists and {why}; it is left as it is",
            hint="choose another name" if self.force is None else f"{_FORCE[in_command()]} replaces it",
        )

    def _stream(self, parts: Iterable[bytes]) -> bool:
        try:
            descriptor = self._open()
            try:
                if os.isatty(descriptor):
                    # Shown as text, without control characters that move the cursor or change a
                    # colour.
                    parts = [shown.terminal(b"".join(parts).decode(errors="replace")).encode()]
                _write_all(descriptor, parts)
            finally:
                os.close(descriptor)
        except BrokenPipeError:
            return False
        return True

    def _open(self) -> int:
        if self.target.descriptor is not None:
            return os.dup(self.target.descriptor)
        place = self.target.place
        # The text of a /proc link to another process's pipe is no path.
        follow = 0 if place.is_symlink() else os.O_NOFOLLOW
        # Neither O_CREAT nor O_TRUNC: opening a file that has replaced the stream changes nothing.
        descriptor = os.open(place, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | follow)
        if identity_of(os.fstat(descriptor)) != self.target.identity:
            os.close(descriptor)
            self._refuse_change()
        return descriptor

    def _refuse_change(self) -> NoReturn:
        raise _refusal(self.given, self.name, "it has become another kind of file meanwhile; it is left as it is")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            refusal = _refusal(self.given, self.name, error.strerror or str(error))
            if error.errno in _REFUSALS:
                raise refusal from None
            raise RunFailedError(refusal.message) from None


def _start(name: str) -> str:
    return f"{name}: " if name else ""


def _refusal(given: Path, name: str, why: str) -> UserError:
    if name:
        return UserError(f"{name}: {given} cannot be written: {why}")
    return UserError(f"{given}: cannot be written: {why}", hint="choose another place")


def output_file(
    given: Path,
    name: str = "",
    *,
    is_ours: Callable[[bytes], bool] | None = None,
    force: bool | None = None,
    reads: Iterable[Path] = (),
) -> OutputFile:
    """Find and check the target of an option or an argument, before any work is done.

    Args:
        given: The path.
        name: The option as it was given, if the path is a part of it: messages begin with it.
        is_ours: Whether anabranch made the content that begins with these bytes; ``None`` if content has no mark.
        force: Foreign content is also replaced; ``None`` if the command has no ``--force``.
        reads: Files that the command reads, which it must not replace.

    Raises:
        UserError: The target must not or cannot be written.
    """
    try:
        target = find(given)
        for read in reads:
            if same_file(given, read):
                raise _refusal(given, name, f"it is {read}, which this command reads")
        _check_kind(given, name, target, force=bool(force))
    except OSError as error:
        raise _refusal(given, name, error.strerror or str(error)) from None
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        # The name has a NUL byte or a surrogate.
        raise UserError(f"{_start(name)}{str(given)!r} cannot be a file's name") from None
    output = OutputFile(given, name, target, is_ours, force)
    output.check()
    return output


def _check_kind(given: Path, name: str, target: Target, *, force: bool) -> None:
    """Refuse directories, sockets, foreign block devices, and the file of the redirected standard output."""
    if target.descriptor is not None:
        mode = os.fstat(target.descriptor).st_mode
    elif target.kind is Kind.ABSENT:
        return
    else:
        mode = os.stat(target.place).st_mode
    if stat.S_ISDIR(mode):
        raise _refusal(given, name, "it is a directory; a file was expected")
    if stat.S_ISSOCK(mode) and target.descriptor is None:
        raise _refusal(given, name, "it is a socket; a file was expected")
    if stat.S_ISBLK(mode) and not force:
        why = "it is a block device, whose content was not made by anabranch; it is left as it is"
        raise _refusal(given, name, why)
    if target.kind is Kind.REGULAR:
        for number, stream in ((1, "standard output"), (2, "standard error")):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(number), os.stat(target.place)):
                    # The printed text would go into the replaced file, which then has no name.
                    raise _refusal(given, name, f"{stream} goes there")


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@contextmanager
def _aside_file(place: Path, like: Path | None, parts: Iterable[bytes] = ()) -> Iterator[Path]:
    """A new hidden file in the directory of ``place``, with the mode and owner of the file ``like``.

    It is removed after the block, unless it has been renamed.
    """
    aside = owner.beside(place)
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            if like is not None:
                _take_over(like, descriptor)
            _write_all(descriptor, parts)
        finally:
            # Closed before it gets its name: some file systems report a full disk here.
            os.close(descriptor)
        yield aside
    finally:
        aside.unlink(missing_ok=True)
        owner.forget(aside)


def _take_over(place: Path, descriptor: int) -> None:
    """Give a new file the owner, mode and extended attributes (also access lists) of the file at ``place``."""
    try:
        there = os.lstat(place)
    except OSError:
        return
    if not stat.S_ISREG(there.st_mode):
        return
    new, mode = os.fstat(descriptor), stat.S_IMODE(there.st_mode)
    if (there.st_uid, there.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.fchown(descriptor, there.st_uid, there.st_gid)
        except PermissionError:
            # Set-user-ID and set-group-ID bits belong to the owner, which the new file does not
            # get.
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
    os.fchmod(descriptor, mode)
    with contextlib.suppress(OSError, AttributeError):
        for name in os.listxattr(place, follow_symlinks=False):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(place, name, follow_symlinks=False))


def _write_all(descriptor: int, parts: Iterable[bytes]) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _put(aside: Path, place: Path, check: Callable[[Path], None]) -> None:
    """Give ``aside`` the name ``place``; ``check`` raises unless the file with that name may be replaced.

    Raises:
        UserError: ``check`` raised it; nothing has changed.
    """
    from anabranch import _engine

    with whole_step():
        for _ in range(_MOST_TRIES):
            if not os.path.lexists(place):
                try:
                    if _engine.rename_new(str(aside), str(place)):
                        return
                    aside.rename(place)
                except FileExistsError:
                    continue
                return
            check(place)
            try:
                if not _engine.exchange(str(aside), str(place)):
                    aside.replace(place)
                    return
            except FileNotFoundError:
                continue
            except OSError as error:
                # A lower layer of an overlay.
                if error.errno != errno.EXDEV:
                    raise
                aside.replace(place)
                return
            try:
                # Another process may have replaced it meanwhile.
                check(aside)
            except BaseException:
                _engine.exchange(str(aside), str(place))
                raise
            return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file with one of this package's names into one of its directories, atomically.

    Raises:
        UserError: The name is taken by a directory, pipe, device or socket.
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    owner.remove_dead(path.parent)

    def check(there: Path) -> None:
        if not stat.S_ISREG(os.lstat(there).st_mode):
            raise UserError(f"{path} is not a regular file; it is left as it is", hint="choose a new directory")

    try:
        place = find(path).place
        with _aside_file(place, place, [content] if isinstance(content, bytes) else content) as aside:
            _put(aside, place, check)
    except OSError as error:
        # The error names the target, not the file beside it.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
