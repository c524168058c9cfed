"""Reads a single mahimahi trace: a scenario whose link has this capacity in both directions."""

from __future__ import annotations

import re
from pathlib import Path

from anabranch.convert import capacity
from anabranch.convert.content import Description, Notes, Side, Source, path_document


def recognise(_name: str, head: bytes) -> bool:
    """Whether every line is a whole number."""
    lines = [line.split(b"#")[0].strip() for line in head.splitlines()[:50]]
    numbers = [line for line in lines if line]
    return bool(numbers) and all(re.fullmatch(rb"[0-9]+", line) for line in numbers)


def read(source: Source, _notes: Notes) -> Description:
    """The scenario and the trace beside it.

    Raises:
        UserError: A line is no time in its order.
    """
    capacity.parse(source.text())
    name = trace_name(source)
    link: Side = {"delay": "20 ms", "service": {"kind": "trace", "file": name}}
    document = path_document(f"A capacity trace: {Path(source.name).name}", link)
    return Description(document, {name: source.content.removeprefix(b"\xef\xbb\xbf")})


def trace_name(source: Source) -> str:
    """Name of the trace beside the scenario."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "_", Path(source.name).name).removesuffix(".trace").strip(".") or "capacity"
    return f"{stem}.trace"
