"""Files of a run's captures: a file that an option names, or one in the directory of ``--out``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UserError
from anabranch.files.capture import parse_option
from anabranch.files.output import MANIFEST, follow
from anabranch.files.output_file import OutputFile, output_file, same_file

_SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDER = bytes.fromhex("1a2b3c4d")
_APPLICATION = 4
"""Option ``shb_userappl``: the program that wrote the section."""
_FIRST_OPTION = 24
"""Octets of a section header before its options."""
_OURS = b"Anabranch "


def is_capture_of_ours(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a pcapng capture that anabranch wrote.

    The section header block names the program (draft-ietf-opsawg-pcapng §4.1).
    """
    return any(code == _APPLICATION and value.startswith(_OURS) for code, value in _options(head))


def _options(head: bytes) -> Iterator[tuple[int, bytes]]:
    """The options of a section header block; none if ``head`` is another block."""
    if head[:4] != _SECTION_HEADER or len(head) < _FIRST_OPTION:
        return
    if head[8:12] not in (_BYTE_ORDER, _BYTE_ORDER[::-1]):
        return
    is_big = head[8:12] == _BYTE_ORDER

    def number(at: int, octets: int) -> int:
        return int.from_bytes(head[at : at + octets], "big" if is_big else "little")

    at, end = _FIRST_OPTION, min(number(4, 4) - 4, len(head))
    while at + 4 <= end:
        code, length = number(at, 2), number(at + 2, 2)
        if code == 0:
            return
        yield code, head[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


@dataclass(frozen=True)
class CaptureFile:
    """The file of one capture.

    Attributes:
        capture: The captured link, or one direction of it.
        given: The path as it was given.
        file: The file that is written; ``None`` for one in the directory of ``--out``.
        inside: Its path in that directory.
    """

    capture: str
    given: Path
    file: OutputFile | None
    inside: Path | None

    @property
    def is_standard_output(self) -> bool:
        """Whether the capture and the printed text would be one stream."""
        return self.file is not None and self.file.is_standard_output

    def write(self, content: bytes) -> bool:
        """Write it unless it is inside ``--out``.

        Returns whether the reader of a stream took all of it.

        Raises:
            UserError: The place cannot be written any more.
            RunFailedError: The disk is full, or fails otherwise.
        """
        return self.file is None or self.file.write(content)


def capture_files(
    options: Sequence[str], inputs: Iterable[Path], out: Path | None, *, force: bool | None = None
) -> list[CaptureFile]:
    """Read every ``--pcap``, and refuse files that must not be overwritten.

    Args:
        options: As they were given.
        inputs: The files that the run reads.
        out: The directory of ``--out``.
        force: Foreign files are replaced.

    Raises:
        UserError: An option is wrong, or its file is one of ``inputs``, of another option, of the results or foreign.
    """
    inputs = list(inputs)
    files: list[CaptureFile] = []
    for option in options:
        capture, path = parse_option(option)
        wrong = f"--pcap {option!r}"
        for read in inputs:
            if same_file(path, read):
                raise UserError(f"{wrong}: {path} is {read}, which this run reads", hint="name another file")
        for other in files:
            if same_file(path, other.given):
                raise UserError(
                    f"{wrong}: --pcap {other.capture}={other.given} writes the same file",
                    hint="give each capture a separate file",
                )
        inside = _inside(path, out, wrong)
        if inside is not None and path.exists() and not path.is_file():
            raise UserError(f"{wrong}: {path} is no regular file; --out {out} makes one", hint="name another file")
        file = None
        if inside is None:
            file = output_file(path, wrong, is_ours=is_capture_of_ours, force=force)
        files.append(CaptureFile(capture, path, file, inside))
    return files


def _inside(path: Path, out: Path | None, wrong: str) -> Path | None:
    """The path in ``out``, whose content is replaced as a whole.

    Raises:
        UserError: The results have a file of that name, or ``out`` would be in the file.
    """
    from anabranch.result.summary import TABLES

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
