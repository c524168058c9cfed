"""A capture with the findings as packet comments, for Wireshark and tshark (pcapng, opt_comment)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anabranch import _engine, owner
from anabranch.diagnosis import Diagnosis, directions
from anabranch.diagnosis_text import cause_text, overview
from anabranch.errors import UserError
from anabranch.progress import Progress

MOST_IN_COMMENT = 10
"""Sentences at one frame."""


def comments(document: Diagnosis) -> dict[int, str]:
    """What is said at each frame, one sentence a line."""
    told: dict[int, list[str]] = {}
    for connection in document["connections"]:
        for frame, sentence in _sentences(connection):
            told.setdefault(frame, []).append(sentence)
    return {frame: "\n".join(dict.fromkeys(lines[:MOST_IN_COMMENT])) for frame, lines in told.items()}


def write_annotated(document: Diagnosis, target: Path) -> None:
    """Write the capture of a diagnosis as pcapng with comments; the file appears whole or not at all.

    Raises:
        UserError: The capture cannot be read any more, or the place cannot be written.
    """
    if not target.parent.is_dir():
        raise UserError(f"{target}: cannot be written: {target.parent} is no directory", hint="choose another place")
    if target.is_dir() or (target.exists() and target.samefile(document["file"])):
        raise UserError(f"{target}: cannot be written: it is the capture or a directory", hint="choose another place")
    aside = owner.beside(target)
    try:
        title = "\n".join(overview(document))
        with Progress(target.name, 1) as bar:
            _engine.annotate_capture(document["file"], str(aside), comments(document), title, bar.update)
        aside.replace(target)
    except _engine.CaptureError as error:
        raise UserError(f"{target}: {error}") from None
    finally:
        aside.unlink(missing_ok=True)
        owner.forget(aside)


def _sentences(connection: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Frames of a connection, and what is said there."""
    for finding in connection["findings"]:
        for frame in finding["packets"]:
            yield frame, f"{finding['cause']}: {finding['text']}"
    if connection["reset"]:
        yield connection["reset"]["packet"], f"reset by {connection['reset']['by']}"
    for _, way in directions(connection):
        for one in way["retransmissions"]:
            verdict = {True: "needed", False: "spurious", None: "undecided"}[one["needed"]]
            lost = f"; lost {one['lost']} the capture point" if one["lost"] != "unknown" else ""
            earlier = f"; earlier copy in frame {one['earlier']}" if one["earlier"] else ""
            yield one["packet"], f"retransmission ({one['trigger']}), {verdict}: {one['evidence']}{lost}{earlier}"
        for stall in way["stalls"]:
            if stall["packets"]:
                after = f" after frame {stall['packets'][0]}" if len(stall["packets"]) > 1 else ""
                told = f"ends a pause of {stall['duration_s'] * 1e3:.1f} ms{after}: {cause_text(stall)}"
                yield stall["packets"][-1], told
