"""Recognises files that are not the expected scenario or study, and suggests a use for them."""

from __future__ import annotations

import zlib
from pathlib import Path

from anabranch.errors import UserError
from anabranch.text import toml_text

SCENARIO = "a scenario (TOML)"

_PCAP = {
    bytes.fromhex(magic)
    for big in ("a1b2c3d4", "a1b23c4d", "a1b2cd34")
    for magic in (big, "".join(reversed([big[i : i + 2] for i in range(0, 8, 2)])))
}
"""Magic numbers of microseconds, nanoseconds, and the variant with longer packet headers, in either byte order."""

_PCAPNG = b"\x0a\x0d\x0d\x0a"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

_BINARY = {
    b"PAR1": "a Parquet table",
    b"\x89PNG": "a PNG image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a ZIP archive",
    b"\x7fELF": "a program (ELF)",
    b"snoop\0\0\0": "a packet capture (snoop)",
    b"\xd0\xcf\x11\xe0": "an Office document",
    b"BZh": "a file compressed with bzip2",
    b"\xfd7zXZ\0": "a file compressed with xz",
    b"SQLite format 3\0": "a database (SQLite)",
}

_REPLAY = """\
a scenario can replay it as a UDP flow, each packet's length at its time:
    duration = "10 s"
    [link.path]
    between = ["A", "B"]
    rate = "10 Mbit/s"
    delay = "20 ms"
    [flow.trace]
    from = "A"
    to = "B"
    protocol = "udp"
    workload = {{ kind = "replay", file = {file} }}
  `from` and `to` in `workload` select one direction; `anabranch explain replay` lists the keys"""


def capture_kind(head: bytes) -> str | None:
    """``"pcap"`` or ``"pcapng"`` and its compression, if the file that begins with ``head`` is a capture."""
    compressed = ""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 64)
        except zlib.error:
            return None
        compressed = ", gzip"
    if head[:4] in _PCAP:
        return f"pcap{compressed}"
    return f"pcapng{compressed}" if head.startswith(_PCAPNG) else None


def check_text(path: Path, head: bytes, noun: str = SCENARIO) -> None:
    """Refuse a file whose first bytes show that it cannot be ``noun``.

    Raises:
        UserError: It is something else; the message names its kind and a suitable command.
    """
    expected = f"{noun} was expected"
    capture = capture_kind(head)
    if capture is not None:
        hint = _REPLAY.format(file=toml_text.write_value(path.name))
        raise UserError(f"{path} is a packet capture ({capture}); {expected}", hint=hint)
    kind, what_to_do = _kind(head)
    if kind is not None:
        raise UserError(f"{path} is {kind}; {expected}", hint=what_to_do)
    if noun == SCENARIO and path.suffix != ".toml":
        _check_convertible(path, head)


def _check_convertible(path: Path, head: bytes) -> None:
    """Refuse another tool's description of a path, which `convert` makes into a scenario.

    Raises:
        UserError: It is one.
    """
    from anabranch.convert import formats

    try:
        found = formats.recognise(path.name, head)
    except UserError:
        return
    if found.name != "scenario" and found.reader is not None and found.reader[1] == "scenario":
        raise UserError(
            f"{path} is in the format `{found.name}`; {SCENARIO} was expected",
            hint=f"anabranch convert {path} --out {path.stem}.toml",
        )


def _kind(head: bytes) -> tuple[str | None, str | None]:
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            hint = "`editcap -F pcap` converts it" if "capture" in kind else None
            return kind, hint
    if head.startswith((_GZIP, _ZSTD)):
        name = "gzip" if head.startswith(_GZIP) else "zstd"
        return f"a file compressed with {name}", "decompress it first; only captures are read as they are"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _looks_utf16(head):
        return "UTF-16 text", "save it as UTF-8"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page", "if it is the report of a run, run the scenario's own file (.toml)"
    if start.startswith((b"<?xml", b"<svg")):
        return "an XML file", None
    if start.startswith(b"{"):
        return "a JSON file", "in a run's summary.json, `resolved_scenario` is the scenario"
    return ("a binary file" if _looks_binary(head) else None), None


def _looks_binary(head: bytes) -> bool:
    """Whether more than 5 % of the bytes are control characters.

    The text's parser reports the position of a single one.
    """
    sample = head[:1024]
    controls = sum(byte < 32 and byte not in b"\t\n\f\r" for byte in sample)
    return 20 * controls > len(sample)


def _looks_utf16(head: bytes) -> bool:
    """Whether every other byte is NUL, as in ASCII text in UTF-16 without a byte order mark."""
    sample = head[: min(len(head), 256) & ~1]
    return len(sample) >= 8 and (not any(sample[0::2]) or not any(sample[1::2])) and any(sample)


def check_directory(path: Path, noun: str = SCENARIO) -> None:
    """Refuse a directory, and name the command for its kind.

    Raises:
        UserError: It is a directory.
    """
    from anabranch.files.output import MANIFEST, read_manifest

    if not path.is_dir():
        return
    hint = None
    manifest = read_manifest(path) if (path / MANIFEST).is_file() else None
    if (path / "study.toml").is_file():
        hint = f"it is a study: `anabranch study {path}`"
    elif manifest is not None:
        hint = f"it has the results of a {manifest.kind}; the scenario is the file that was run"
        if not manifest.is_complete:
            hint += " (the results are not complete: writing them was cut short)"
        if (path / "report.html").is_file():
            hint += ", and the figures are in report.html"
    else:
        scenarios = sorted(file.name for file in path.glob("*.toml"))[:6]
        if scenarios:
            hint = f"it has {', '.join(scenarios)}"
    raise UserError(f"{path} is a directory; {noun} was expected", hint=hint)
