"""Errors that a user can correct. The engine's ``ScenarioError`` is the same for scenario files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_NAMES = 16
"""Names that a hint lists."""


class UserError(ValueError):
    """Bad input outside a scenario file: a path, an option, a study. Exit status 2.

    Args:
        message: The mistake and the expected value, in one sentence.
        file: The file with the mistake, if any.
        line: Line in that file, from 1.
        column: Column in that line, from 1, in characters.
        source: The text of that line, shown with a caret below the column.
        hint: The nearest valid name, or an alternative.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.source = source
        self.hint = hint
        super().__init__(self.render())

    def render(self) -> str:
        """The whole message: place, sentence, source line with a caret, hint."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        lines = [f"{place}: {self.message}" if place else self.message]
        if self.source is not None and self.line is not None:
            number = str(self.line)
            lines.append(f"  {number} | {self.source}")
            if self.column is not None:
                lines.append(f"  {' ' * len(number)} | {' ' * (self.column - 1)}^")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class NotRecordedError(UserError):
    """A requested table or figure was not recorded in the run; the hint names the argument that records it."""


class MemoryWarning(UserWarning):
    """A run may take more memory than the machine has."""


class RunFailedError(RuntimeError):
    """The input was good and the work still failed: exit status 1."""


def require_linux(what: str) -> None:
    """Refuse on other systems.

    Raises:
        RunFailedError: This system is not Linux.
    """
    if sys.platform != "linux":
        raise RunFailedError(f"{what} needs Linux; simulated runs, studies and diagnoses of files work on this system")


def is_of_change(place: str, change: str) -> bool:
    """Whether an error's place, ``--set '…'``, possibly shortened, is this change."""
    if place == f"--set '{change}'":
        return True
    start = place.removeprefix("--set '").removesuffix("…'")
    return place.startswith("--set '") and place.endswith("…'") and change.startswith(start)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint that names the valid name closest in meaning or spelling; otherwise it lists the valid names."""
    import difflib

    from anabranch.text.synonyms import meant, plain

    names = sorted(set(valid))
    same = [one for one in names if plain(one) == plain(name)]
    target = meant(name) or ""
    same += [one for one in (target, target.rpartition(".")[2]) if one in names]
    if same:
        return f'did you mean "{same[0]}"?'
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f'did you mean "{close[0]}"?'
    if not names:
        return "there are none"
    shown = ", ".join(names[:_MOST_NAMES])
    return f"valid: {shown}{', …' if len(names) > _MOST_NAMES else ''}"
