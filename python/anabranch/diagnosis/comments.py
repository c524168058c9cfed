"""A capture with the findings as packet comments, for Wireshark and tshark (pcapng, opt_comment)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch import _engine
from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.text import cause_text, overview
from anabranch.errors import UserError
from anabranch.files.capture_file import is_capture_of_ours
from anabranch.files.output_file import OutputFile, output_file
from anabranch.progress import Progress
from anabranch.text.lines import pause_length

MOST_IN_COMMENT = 10
"""Sentences at one frame."""


def comments(document: Diagnosis) -> dict[int, str]:
    """Comments by frame number, one sentence a line."""
    told: dict[int, list[str]] = {}
    for connection in document.content["connections"]:
        for frame, sentence in _sentences(connection):
            told.setdefault(frame, []).append(sentence)
    return {frame: "\n".join(dict.fromkeys(lines[:MOST_IN_COMMENT])) for frame, lines in told.items()}


def annotated_file(target: Path, capture: Path, *, force: bool | None = None) -> OutputFile:
    """The file of the annotated capture, checked before any work is done.

    Args:
        target: The file.
        capture: The capture, which is not replaced.
        force: A file that anabranch did not make is replaced.

    Raises:
        UserError: The target must not or cannot be written.
    """
    return output_file(target, is_ours=is_capture_of_ours, force=force, reads=[capture])


def write_annotated(document: Diagnosis, target: OutputFile) -> None:
    """Write the capture of a diagnosis as pcapng with comments; the file appears whole or not at all.

    Raises:
        UserError: It is a qlog, the capture cannot be read any more, or the place cannot be written.
        RunFailedError: The disk is full, or fails otherwise.
    """
    if document["source"] == "qlog":
        raise UserError(
            f"{target.given}: packet comments are for captures, and {document['file']} is a qlog",
            hint="--json and --out have the findings with the numbers of its events",
        )

    def make(aside: Path) -> None:
        title = "\n".join(overview(document, has_hint=False))
        with Progress(target.name, 1) as bar:
            _engine.annotate_capture(document["file"], str(aside), comments(document), title, bar.update)

    try:
        target.fill(make)
    except _engine.CaptureError as error:
        raise UserError(f"{target.given}: {error}") from None


def _sentences(connection: Connection) -> Iterator[tuple[int, str]]:
    """Frames of a connection, each with a sentence on it."""
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
                told = f"ends a pause of {pause_length(stall['duration_s'])}{after}: {cause_text(stall)}"
                yield stall["packets"][-1], told
