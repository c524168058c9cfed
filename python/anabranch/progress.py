"""A progress bar on standard error for work that takes longer than two seconds."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from anabranch.text import shown

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PATIENCE_S = 2.0
"""Seconds of silence before a bar appears."""


class Progress:
    """Counts finished work; draws only on a terminal, and only after :data:`PATIENCE_S`.

    Args:
        label: The work, for example the name of a file.
        total: The amount of work, in the unit of ``update``.
        unit: The name of that unit, which follows the numbers; without one, pieces are counted.
    """

    def __init__(self, label: str, total: float, unit: str = "") -> None:
        self.label = shown.plain(label)
        self.total = total
        self.unit = unit
        self._started = time.monotonic()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def update(self, done: float) -> None:
        """``done`` of ``total`` is finished."""
        if self._bar is None:
            if time.monotonic() - self._started < PATIENCE_S:
                return
            self._open()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=self.total)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        share = TextColumn("{task.percentage:>3.0f} %")
        measured = TextColumn("{task.completed:.1f}/{task.total:g} " + self.unit)
        counted = MofNCompleteColumn() if self.total > 1 else share
        self._bar = Progress(
            # A label may be the name of a file, so mark-up and control characters are off.
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            measured if self.unit else counted,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(self.label, total=self.total)
        self._bar.start()
