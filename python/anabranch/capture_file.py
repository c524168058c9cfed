"""Where captures go: a file that appears whole, or what reads as it is written; never in place of anything else."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.capture import parse_option
from anabranch.errors import RunFailedError, UserError
from anabranch.files import read_head
from anabranch.output import MANIFEST, follow, write_whole

_PCAPNG = b"\x0a\x0d\x0d\x0a"
"""A pcapng file's first octets: the type of its section header block (draft-ietf-opsawg-pcapng §4.1)."""


@dataclass(frozen=True)
class CaptureFile:
    """Where one capture goes.

    Attributes:
        capture: What is captured: a link, or one direction of it.
        given: The path as it was given.
        stream: It is a FIFO or a character device, and is written as it is.
        inside: Its path in the directory of ``--out``, if it belongs there.
    """

    capture: str
    given: Path
    stream: bool
    inside: Path | None

    @property
    def is_standard_output(self) -> bool:
        """What is written there and what is printed would be one stream."""
        if not self.stream:
            return False
        try:
            there, printed = os.stat(self.given), os.fstat(1)
        except OSError:
            return False
        nowhere = stat.S_ISCHR(there.st_mode) and there.st_rdev == os.stat(os.devnull).st_rdev
        return os.path.samestat(there, printed) and not nowhere

    def write(self, content: bytes) -> bool:
        """Write it, unless it is inside ``--out``; whether all of it was wanted by who reads a stream.

        Raises:
            RunFailedError: The disk is full, or fails otherwise.
        """
        try:
            if not self.stream:
                write_whole(follow(self.given), content)
                return True
            # No buffer: what a reader that went away left in it would be tried again when it is closed.
            with open(self.given, "wb", buffering=0) as stream:
                rest = memoryview(content)
                while rest:
                    rest = rest[stream.write(rest) or 0 :]
        except BrokenPipeError:
            return False
        except OSError as error:
            raise RunFailedError(f"{self.given}: {error.strerror or error}") from None
        return True


def capture_files(options: Sequence[str], inputs: Iterable[Path], out: Path | None) -> list[CaptureFile]:
    """Read every ``--pcap``, and refuse what would destroy something.

    Args:
        options: As they were given.
        inputs: The files that the run reads.
        out: The directory of ``--out``.

    Raises:
        UserError: An option is wrong, or its file is one of ``inputs``, of another option, of the results or foreign.
    """
    inputs = list(inputs)
    files: list[CaptureFile] = []
    for option in options:
        capture, path = parse_option(option)
        wrong = f"--pcap {option!r}"
        found = _look(path, wrong)
        for read in inputs:
            if _same(path, read):
                raise UserError(f"{wrong}: {path} is {read}, which this run reads", hint="name another file")
        for other in files:
            if _same(path, other.given):
                raise UserError(
                    f"{wrong}: --pcap {other.capture}={other.given} writes the same file",
                    hint="give each capture a file of its own",
                )
        inside = _inside(path, out, wrong)
        stream = found is not None and not stat.S_ISREG(found.st_mode)
        if not stream:
            _check_file(path, found, wrong, makes_directory=inside is not None)
        files.append(CaptureFile(capture, path, stream, None if stream else inside))
    return files


def _look(path: Path, wrong: str) -> os.stat_result | None:
    """What is there now; ``None`` for nothing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{wrong}: {path} cannot be written: {error.strerror or error}") from None
    mode = found.st_mode
    if stat.S_ISDIR(mode):
        raise UserError(f"{wrong}: {path} is a directory; a file was expected")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise UserError(f"{wrong}: {path} is no file, no FIFO and no character device; it is left as it is")
    if not stat.S_ISREG(mode) and not os.access(path, os.W_OK):
        raise UserError(f"{wrong}: {path} cannot be written: Permission denied")
    return found


def _check_file(path: Path, found: os.stat_result | None, wrong: str, *, makes_directory: bool) -> None:
    """It is to appear whole: its directory can be written, and what is replaced is a capture."""
    if found is not None and found.st_size > 0:
        try:
            first = read_head(path, len(_PCAPNG))
        except UserError as error:
            raise UserError(f"{wrong}: cannot be replaced: {error.message}") from None
        if first != _PCAPNG:
            raise UserError(
                f"{wrong}: {path} is there and is no pcapng capture; it is left as it is", hint="name another file"
            )
    if makes_directory:
        return
    parent = follow(path).parent
    if not parent.is_dir():
        raise UserError(f"{wrong}: the directory {path.parent} does not exist")
    try:
        with tempfile.NamedTemporaryFile(dir=parent, prefix=f".{path.name[:100]}."):
            pass
    except OSError as error:
        raise UserError(f"{wrong}: {path} cannot be written: {error.strerror or error}") from None


def _inside(path: Path, out: Path | None, wrong: str) -> Path | None:
    """The path in ``out``, whose content is replaced as a whole.

    Raises:
        UserError: The results have a file of that name, or ``out`` would be in the file.
    """
    from anabranch.result import TABLES

    if out is None:
        return None
    file, directory = follow(path), follow(out)
    if file == directory or file in directory.parents:
        raise UserError(f"{wrong}: {path} is where --out {out} makes a directory", hint="name another file")
    if directory not in file.parents:
        return None
    inside = file.relative_to(directory)
    ours = {MANIFEST, "summary.json", "report.html", "figures", *(f"{name}.parquet" for name in TABLES)}
    if inside.parts[0] in ours:
        raise UserError(f"{wrong}: --out {out} writes {inside.parts[0]} there itself", hint="name another file")
    return inside


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, there or not yet."""
    if follow(one) == follow(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
