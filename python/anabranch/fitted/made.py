"""Scenario, replay and advice of ``anabranch diagnose`` for one connection, on the screen and as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.diagnosis.document import Connection
from anabranch.extras import is_installed
from anabranch.fitted import words
from anabranch.fitted.advice import advised, repeat, verdict
from anabranch.fitted.replay import Replay, replayed
from anabranch.fitted.scenario import Fitted, fitted

SCENARIO = "scenario.toml"
REPLAY = "replay.pcapng"
CONNECTION = "connection.json"
FIGURE = "replay"


@dataclass(frozen=True)
class Made:
    """A connection's scenario, and its simulations."""

    connection: Connection
    scenario: Fitted
    replay: Replay | None = None

    def lines(self) -> Iterator[str]:
        """The path model, the replay and the advice as lines for the terminal."""
        yield ""
        yield from words.path(self.connection["path"], self.scenario.assumptions)
        if "replay" in self.connection:
            yield ""
            yield from words.replay(self.connection["replay"])
        if self.connection["advice"]:
            yield ""
            yield from words.advice(self.connection["advice"], verdict(self.connection, self.connection["advice"]))

    def write(self, directory: Path) -> None:
        """Write the scenario, the connection as JSON, and the capture and figure of a replay."""
        (directory / SCENARIO).write_text(self.scenario.text, encoding="utf-8")
        (directory / CONNECTION).write_text(json.dumps(self.connection, indent=1) + "\n", encoding="utf-8")
        if self.replay is not None:
            (directory / REPLAY).write_bytes(self.replay.capture)
            if is_installed("matplotlib"):
                self._draw(self.replay, directory)

    def _draw(self, replay: Replay, directory: Path) -> None:
        """Draw the goodput of the capture and of the replay."""
        from anabranch.plot.replay import goodput
        from anabranch.plot.style import house_style, save

        with house_style():
            save(goodput(self.connection["path"]["goodput"], replay.goodput), directory / FIGURE)


def make(
    connection: Connection, file: str, *, replay: bool, advise: bool, engine: str = "sim", kernel: str | None = None
) -> Made:
    """Fit a scenario, and run the requested simulations; adds the results to the connection.

    Args:
        connection: The connection.
        file: The capture.
        replay: Simulate the connection.
        advise: Simulate remedies.
        engine: ``"live"`` and ``"kernel"`` repeat the best of them with the TCP of a kernel.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.

    Raises:
        UserError: The capture has too little of the connection, or there is no such kernel.
    """
    scenario = fitted(connection, file)
    run = None
    if replay:
        run = replayed(connection, scenario)
        connection["replay"] = run.rows
    if advise:
        connection["advice"] = advised(connection, scenario)
        if engine != "sim":
            repeat(connection, scenario, engine, kernel)
    return Made(connection, scenario, run)
