"""Reads files that a scenario or a command names: regular files only, bounded, interruptible."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anabranch.errors import UserError

MIB = 1024 * 1024

MAX_TEXT_BYTES = 16 * MIB
"""Bound of scenario and study files, and of manifests. A hand-written file has a few kilobytes."""

MAX_RESULT_BYTES = 1024 * MIB
"""Bound of files written by this package (summaries, measurements), and of captures."""

_OURS = (".toml", ".json", ".pcapng", ".pcap")
"""File name extensions that commands accept."""

_CHUNK = MIB
"""Python handles signals between two chunks; a chunk of a regular file takes milliseconds."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NoSuchFileError(UserError):
    """There is no file of that name."""


def read_bytes(path: str | Path, *, most: int, check: Callable[[bytes], None] | None = None) -> bytes:
    """The content of a file.

    Args:
        path: The file; links are followed.
        most: The largest content, in bytes. Bytes are counted during reading, because files of ``/proc`` have size 0.
        check: Called with the first bytes, before the check of the size, to refuse a file of the wrong kind.

    Raises:
        NoSuchFileError: There is none.
        UserError: It is not a regular file, is too large, blocks, or cannot be read.
    """
    content = bytearray()
    with _opened(path) as (descriptor, size):
        for chunk in _chunks(path, descriptor):
            if check is not None and not content:
                check(chunk)
            content += chunk
            if max(size, len(content)) > most:
                told = f"{size:,} bytes" if size > most else f"more than {most:,} bytes"
                raise UserError(f"{path} has {told}; at most {most:,} were expected")
    return bytes(content)


def read_json(path: str | Path, *, most: int = MAX_RESULT_BYTES) -> Any:
    """The content of a JSON file; raises the errors of :func:`read_bytes` too.

    Raises:
        UserError: It is not JSON; the message has line and column.
    """
    return parse_json(read_bytes(path, most=most), str(path))


def parse_json(content: bytes | str, file: str) -> Any:
    """The value of a JSON document.

    Args:
        content: The document.
        file: Its name in messages.

    Raises:
        UserError: It is not JSON (RFC 8259); the message has line and column.
    """
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON: {error.msg}", file=file, line=error.lineno, column=error.colno) from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not JSON: it is not UTF-8 text") from None
    except RecursionError:
        raise UserError(f"{file}: the JSON is nested too deeply") from None
    except ValueError as error:
        # An integer with thousands of digits, or an invalid number.
        raise UserError(f"{file}: {error}") from None


def _refuse_constant(name: str) -> None:
    """Refuse infinity and NaN, which JSON lacks and Python's reader accepts.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"not JSON: {name} is no number")


def read_standard_input(*, most: int) -> bytes:
    """The whole content of standard input.

    Raises:
        UserError: It has more than ``most`` bytes, or cannot be read.
    """
    content = bytearray()
    for chunk in _chunks("standard input", 0):
        content += chunk
        if len(content) > most:
            raise UserError(f"standard input has more than {most:,} bytes, which were the most expected")
    return bytes(content)


def read_head(path: str | Path, length: int) -> bytes:
    """The first ``length`` bytes of a file, or all if it has fewer; raises the errors of :func:`read_bytes`."""
    with _opened(path) as (descriptor, _), _explained(path):
        return os.read(descriptor, length)


def content_hash(path: str | Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal; raises the errors of :func:`read_bytes`."""
    digest, length = hashlib.sha256(), 0
    with _opened(path) as (descriptor, _):
        for chunk in _chunks(path, descriptor):
            digest.update(chunk)
            length += len(chunk)
            if length > MAX_RESULT_BYTES:
                raise UserError(f"{path} has more than {MAX_RESULT_BYTES:,} bytes, which were the most expected")
    return digest.hexdigest()


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[int, int]]:
    """The descriptor of a regular file, and its reported size."""
    with _explained(path):
        # Checked before opening: opening a device may have effects, and opening a FIFO wakes its
        # writer.
        _check_regular(path, os.stat(path))
        # Without O_NONBLOCK, a FIFO that has replaced the file would block here.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        _check_regular(path, found)
        yield descriptor, found.st_size
    finally:
        os.close(descriptor)


def _check_regular(path: str | Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "not a regular file")
        raise UserError(f"{path} is {kind}; a regular file was expected", hint=_hint(found.st_mode))


def _similar(path: Path) -> str | None:
    """A file of the same kind in the directory with a similar name."""
    import difflib

    try:
        there = os.listdir(path.parent)
    except (OSError, ValueError):
        return None
    beside = {Path(name).stem: name for name in there if Path(name).suffix == path.suffix}
    close = difflib.get_close_matches(path.stem, beside, 1)
    if close:
        return f'did you mean "{beside[close[0]]}"?'
    # Names without the extension, or with another one.
    others = {Path(name).stem: name for name in there if Path(name).suffix in _OURS}
    close = difflib.get_close_matches(path.stem, others, 1, 0.8)
    return f'did you mean "{others[close[0]]}"?' if close else None


def _hint(mode: int) -> str | None:
    if stat.S_ISFIFO(mode):
        return "write its content into a file first: a file may be read more than once"
    return None


def _chunks(path: str | Path, descriptor: int) -> Iterator[bytes]:
    while True:
        with _explained(path):
            chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return
        yield chunk


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Convert errors of the system to errors of this package."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError:
        raise NoSuchFileError(f"{path}: no such file", hint=_similar(Path(path))) from None
    except BlockingIOError:
        # Some files of /proc and /sys claim to be regular but wait for events (/proc/kmsg,
        # trace_pipe).
        raise UserError(f"{path} waits for events instead of ending; a regular file was expected") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a symbolic link that leads in a circle") from None
        raise UserError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        # The name has a NUL byte or a surrogate.
        raise UserError(f"{str(path)!r} cannot be a file's name") from None
