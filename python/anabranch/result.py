"""The result of one run: the summary as typed dictionaries, the tables as Polars frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import polars as pl

    from anabranch import _engine
    from anabranch.summary import (
        FlowSummary,
        GatewaySummary,
        GroupSummary,
        LinkSummary,
        LiveRunSummary,
        LiveSummary,
        Summary,
    )
    from anabranch.why import Why

TABLES = ("flows", "links", "samples", "ack_samples", "link_samples", "group_samples", "packets",
          "window_events")  # fmt: skip
"""Every table a run may have; all but the first two only when they were recorded."""


class RunResult:
    """What one run gave.

    Attributes:
        summary: The contract's JSON document, as dictionaries.
    """

    def __init__(self, run: _engine.Run) -> None:
        self._run = run
        self._frames: dict[str, pl.DataFrame] = {}
        self.summary: Summary = json.loads(run.summary_json)

    @property
    def summary_json(self) -> str:
        """The summary as the engine wrote it."""
        return self._run.summary_json

    @property
    def digest(self) -> str | None:
        """Hash over every packet observation; equal for equal runs, ``None`` when it was turned off."""
        return self.summary.get("digest")

    @property
    def flows(self) -> dict[str, FlowSummary]:
        """Per flow: goodput, retransmissions, mean cwnd and more."""
        return self.summary["flows"]

    @property
    def links(self) -> dict[str, dict[str, LinkSummary]]:
        """Per link and direction: packets, drops, queue, utilisation."""
        return self.summary["links"]

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """Per aggregated link: members, changes, energy."""
        return self.summary.get("groups", {})

    @property
    def gateways(self) -> dict[str, dict[str, GatewaySummary]]:
        """Per gateway and direction: what took which route, what waited to be put in order, and for how long."""
        return self.summary.get("gateways", {})

    @property
    def live(self) -> LiveSummary | None:
        """Of a live run: what the engine says of itself, and the machine."""
        return cast("LiveRunSummary", self.summary).get("live")

    def table(self, name: str) -> pl.DataFrame:
        """One table as a Polars frame; the columns are the engine's own memory, not a copy.

        Args:
            name: ``"flows"``, ``"links"``, ``"samples"``, ``"ack_samples"``, ``"link_samples"``, ``"group_samples"``,
                ``"packets"`` or ``"window_events"``.

        Raises:
            UserError: There is no table of that name, or this engine does not make it.
        """
        import polars as pl

        from anabranch.errors import UserError, nearest

        if name not in TABLES:
            raise UserError(f'there is no table "{name}"', hint=nearest(name, TABLES))
        if name not in self._frames:
            try:
                self._frames[name] = pl.DataFrame(self._run.table(name))
            except KeyError:
                raise UserError(f'this engine does not make table "{name}"') from None
        return self._frames[name]

    def pcapng(self, capture: str) -> bytes:
        """A capture as a pcapng file's content: raw IP, nanoseconds, each packet's fate on the link as its comment.

        Args:
            capture: A link, or one direction of it, among the ``captures`` of the run.

        Raises:
            UserError: It was not captured.
        """
        from anabranch.capture import place
        from anabranch.errors import UserError

        found = place(capture, self.links)
        try:
            return bytes(self._run.pcapng(found.link, found.direction))
        except ValueError:
            raise UserError(f"{capture} was not captured", hint="name it in captures") from None

    def has_table(self, name: str) -> bool:
        """Whether the engine makes a table, recorded or not."""
        from anabranch.errors import UserError

        try:
            self.table(name)
        except UserError:
            return False
        return True

    def why(self) -> Why:
        """What triggered each retransmission, whether it was needed, and what the window did.

        Raises:
            UserError: The run did not record it.
        """
        from anabranch.errors import UserError
        from anabranch.why import inspect

        if self.live is not None and self.live["trace"]["detail"] is None:
            raise UserError(
                f"the kernel's TCP was not traced, and packets alone do not say why: {self.live['trace']['why_not']}"
            )
        if self.live is not None and (lost := self.live["trace"]["lost_records"]):
            raise UserError(
                f"{lost} records of what the kernel's TCP did were lost; the others do not explain everything",
                hint="run again where the machine is less busy",
            )

        events = self.table("window_events") if self.has_table("window_events") else None
        return inspect(self.table("packets"), events)

    def write(self, directory: str | Path) -> None:
        """Write summary, tables, figures and report into a directory, which appears whole or not at all.

        Raises:
            UserError: The directory holds something else.
        """
        from anabranch.report.run_output import write_run

        write_run(self, Path(directory))

    def __repr__(self) -> str:
        return f"<RunResult of {self.summary.get('scenario')!r}, seed {self.summary.get('seed')}>"
