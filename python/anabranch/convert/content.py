"""Inputs and outputs of a conversion: a scenario, the tables of a run, or a table of another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from anabranch.errors import UserError
from anabranch.keys.component import Component

if TYPE_CHECKING:
    from anabranch.convert.summary_json import OtherSummary
    from anabranch.result import table as columns
    from anabranch.result.summary import AnySummary

MAX_SHOWN = 160
"""Characters of a source line in a message."""


@dataclass(frozen=True)
class Text:
    """A text with its name in messages; converts offsets to lines and columns."""

    file: str
    text: str

    @classmethod
    def decode(cls, file: str, content: bytes) -> Text:
        """UTF-8 text, without its byte order mark.

        Raises:
            UserError: It is not UTF-8; the error has line and column.
        """
        content = content.removeprefix(b"\xef\xbb\xbf")
        try:
            return cls(file, content.decode())
        except UnicodeDecodeError as error:
            before = cls(file, content[: error.start].decode())
            line, column = before.place(len(before.text))
            raise UserError("not UTF-8 text", file=file, line=line, column=column) from None

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, from 1."""
        before = self.text[:at]
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def error(self, at: int, message: str, hint: str | None = None) -> UserError:
        """An error at an offset, with the line that contains it."""
        line, column = self.place(at)
        start = at - (column - 1)
        end = self.text.find("\n", start)
        source = self.text[start : end if end >= 0 else None].rstrip("\r")
        shown = source if len(source) <= MAX_SHOWN and column <= MAX_SHOWN else None
        return UserError(message, file=self.file, line=line, column=column, source=shown, hint=hint)

    def where(self, at: int) -> str:
        """A place, as the beginning of a note."""
        line, column = self.place(at)
        return f"{self.file}:{line}:{column}"


@dataclass
class Notes:
    """Properties that the target cannot express, in the order of the input; each sentence once."""

    lines: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Additions that a scenario needs, which lose nothing."""

    def lost(self, message: str, where: str | None = None) -> None:
        """Note one loss, with the place in the input if it has one."""
        line = f"{where}: {message}" if where else message
        if line not in self.lines:
            self.lines.append(line)


@dataclass(frozen=True)
class Source:
    """The input: its name in messages, its content, and the base directory of file names in it."""

    name: str
    content: bytes
    directory: Path
    routing: str | None = None
    """Routing of a topology's flows: a name of :data:`anabranch.convert.topology.ROUTINGS`."""

    def text(self) -> Text:
        """The content as text.

        Raises:
            UserError: It is not UTF-8.
        """
        return Text.decode(self.name, self.content)


@dataclass(frozen=True)
class Description:
    """A scenario as a document of its file format, and the files that it names."""

    document: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Measurements of another program: columns like the ``samples`` table, and a summary with our result names."""

    columns: Mapping[str, Sequence[Any]]
    summary: OtherSummary


@dataclass(frozen=True)
class Run:
    """A run of this package: its summary, and its tables by name."""

    summary: AnySummary
    table: Callable[[str], columns.Table]


@dataclass(frozen=True)
class Link:
    """One link of a resolved scenario, each direction with every value written out."""

    name: str
    ends: tuple[str, str]
    forward: Mapping[str, Any]
    reverse: Mapping[str, Any]
    files: Mapping[str, bytes]
    """The files that it names, by their name in the scenario."""


@dataclass(frozen=True)
class Written:
    """The output: its content, and the files beside it that it names."""

    content: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Names:
    """Names of the output and of the files beside it, and whether the name implies compression."""

    stem: str
    compressed: bool = False


PAPER_PACKET = 1500
"""Bytes of a full packet, to convert between formats in packets and scenarios in bytes."""


LOCAL_DELAY = "10 us"
"""The approximate delay of a cable and two interfaces."""


class Side(TypedDict, total=False):
    """The keys of a link's direction in a scenario."""

    rate: str
    delay: str | Component
    service: Component
    queue: Component
    held_limit: str
    impair: list[Component]


class LinkTable(Side, total=False):
    """The keys of a link in a scenario."""

    between: list[str]
    forward: Side
    reverse: Side


def path_document(title: str, link: Side) -> Mapping[str, object]:
    """A scenario of one link that a bulk flow crosses."""
    return {
        "title": title,
        "duration": "30 s",
        "link": {"path": {"between": ["A", "B"], **link}},
        "flow": {"main": {"from": "A", "to": "B"}},
    }


def per_direction(forward: Side, reverse: Side, notes: Notes) -> Side:
    """The keys of a link whose directions have these values; common values are written once."""
    if not any(key in side for side in (forward, reverse) for key in ("rate", "delay", "service")):
        # A round trip without delay cannot be simulated.
        notes.remarks.append(f"the link has neither rate nor delay; {LOCAL_DELAY} are added on the way back")
        reverse = {**reverse, "delay": LOCAL_DELAY}
    if forward == reverse:
        return forward
    link: LinkTable = {}
    if forward:
        link["forward"] = forward
    if reverse:
        link["reverse"] = reverse
    return link
