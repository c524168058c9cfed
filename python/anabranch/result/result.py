"""The result of one run: the summary as typed dictionaries, and tables, as Polars frames if Polars is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from anabranch.result import entries
from anabranch.result.summary import TABLES

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from anabranch.diagnosis.diagnosis import Diagnosis
    from anabranch.errors import UserError
    from anabranch.result.summary import (
        AnyFlowSummary,
        FlowSummary,
        GatewaySummary,
        GroupSummary,
        LinkSummary,
        LiveRunSummary,
        LiveSummary,
        Summary,
    )
    from anabranch.result.table import Table
    from anabranch.why import Why

SAMPLES = ("samples", "link_samples", "group_samples")
"""Tables that ``samples_ms`` records."""
PACKETS = ("packets", "window_events")
"""Tables that ``packets`` records."""
RETRANSMISSIONS = "retransmissions"
"""The engine's table of retransmissions, derived from the packets; :meth:`RunResult.why` reads it."""

PART_ROWS = 1 << 15
"""Rows of a part of ``packets``; larger parts make its file no smaller and need more memory."""


class Run(Protocol):
    """A run of the engine, or a stored one."""

    @property
    def summary_json(self) -> str:
        """The summary, as text."""

    def table(self, name: str) -> Any:
        """A table, with the Arrow C stream interface."""

    def packet_batches(self, rows: int, columns: list[str] | None = None) -> Iterable[Any]:
        """The table ``packets`` in parts of ``rows`` rows; an empty table is one part."""

    def left_out_packets(self) -> int:
        """Number of packets sent after the log of packets was full."""

    def pcapng(self, link: str, direction: str | None = None) -> bytes:
        """A capture."""


@dataclass(frozen=True)
class KeptRun:
    """The stored form of an engine's run, made when its result is pickled."""

    summary_json: str
    tables: Mapping[str, Table]
    captures: Mapping[tuple[str, str | None], bytes] = field(default_factory=dict)
    left_out: int = 0
    depends: Sequence[tuple[str, str]] = ()
    """The files read by the run, each with a hash of its content."""

    def table(self, name: str) -> Table:
        """A table of the run."""
        return self.tables[name]

    def packet_batches(self, rows: int, columns: list[str] | None = None) -> Iterator[Table]:
        """The table ``packets`` in parts."""
        table = self.tables["packets"] if columns is None else self.tables["packets"].select(*columns)
        for start in range(0, max(table.height, 1), rows):
            yield table.take(slice(start, start + rows))

    def left_out_packets(self) -> int:
        """Number of packets of the run that are not in its table."""
        return self.left_out

    def pcapng(self, link: str, direction: str | None = None) -> bytes:
        """A capture of the run."""
        try:
            return self.captures[link, direction]
        except KeyError:
            raise ValueError("not captured") from None


class RunResult:
    """The result of one run. It can be pickled, and notebooks show it.

        >>> from anabranch import Scenario
        >>> result = Scenario.from_file("reordering.toml").set("duration", "2 s").run(samples_ms=10)
        >>> sorted(result.links)
        ['access', 'bottleneck', 'egress']
        >>> result.table("samples").select("time_s", "cwnd_packets").height
        201
        >>> result.table("packets")
        Traceback (most recent call last):
            ...
        anabranch.errors.NotRecordedError: packets was not recorded: pass packets=True

    Args:
        run: The engine's run.
        recorded: The tables that were recorded; default: all.

    Attributes:
        summary: The contract's JSON document, as dictionaries.
    """

    def __init__(self, run: Run, recorded: Collection[str] | None = None) -> None:
        self._run = run
        self._recorded = frozenset(TABLES if recorded is None else {"flows", "links", *recorded})
        self._frames: dict[str, pl.DataFrame] = {}
        self._tables: dict[str, Table] = {}
        self._why: Why | None = None
        self.summary: Summary = cast("Summary", entries.read(run.summary_json))

    def __reduce__(self) -> tuple[Any, ...]:
        tables = {name: self.plain(name) for name in (*TABLES, RETRANSMISSIONS) if self.has_table(name)}
        kept = KeptRun(self.summary_json, tables, self._captures(), self.left_out_packets)
        return type(self), (kept, self._recorded)

    def _captures(self) -> dict[tuple[str, str | None], bytes]:
        found = {}
        for link, directions in self.links.items():
            for direction in (None, *directions):
                try:
                    found[link, direction] = bytes(self._run.pcapng(link, direction))
                except ValueError:
                    # It was not captured.
                    continue
        return found

    @property
    def summary_json(self) -> str:
        """The summary as the engine wrote it."""
        return self._run.summary_json

    @property
    def digest(self) -> str | None:
        """Hash over every packet observation, equal for equal runs; ``None`` if it was turned off."""
        return self.summary.get("digest")

    @property
    def flows(self) -> dict[str, FlowSummary]:
        """Per flow: goodput, retransmissions, mean cwnd and more.

        A flow of the simulator that ended before the warm-up did has no goodput and no throughput: reading them raises
        a :class:`UserError`.
        """
        return self.summary["flows"]

    @property
    def links(self) -> dict[str, dict[str, LinkSummary]]:
        """Per link and direction: packets, drops, queue, utilisation."""
        return self.summary["links"]

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """Per aggregated link: members, changes, energy."""
        return entries.section(self.summary, "groups")

    @property
    def gateways(self) -> dict[str, dict[str, GatewaySummary]]:
        """Per gateway and direction: the packets on each route, and the packets held to restore order, with waits."""
        return entries.section(self.summary, "gateways")

    @property
    def live(self) -> LiveSummary | None:
        """The live engine's audit, and the machine; ``None`` for other runs."""
        return cast("LiveRunSummary", self.summary).get("live")

    def __getitem__(self, name: str) -> float:
        """A figure of the run by its name or a short name: ``result["goodput"]``, ``result["main.rtt"]``.

        Raises:
            UserError: There is no such figure, several have this name, or it does not apply.
        """
        from anabranch.errors import UserError
        from anabranch.result.flat import flatten
        from anabranch.result.measure_names import one_figure

        figures = flatten(cast("Mapping[str, Any]", self.summary), means=True)
        found = one_figure(name, list(figures), "the run has no figure")
        value = figures[found]
        if value is None:
            raise UserError(f"{found} does not apply to this run", hint="see its meaning: anabranch explain NAME")
        return value

    def table(self, name: str) -> pl.DataFrame:
        """One table as a Polars frame; the columns share the engine's memory without a copy.

        Without Polars (``pip install 'anabranch[tables]'``) it is the table of :meth:`plain`.

        Args:
            name: ``"flows"``, ``"links"``, ``"samples"``, ``"ack_samples"``, ``"link_samples"``, ``"group_samples"``,
                ``"packets"`` or ``"window_events"``.

        Raises:
            NotRecordedError: The run did not record it.
            UserError: There is no table of that name, or this engine does not produce it.
        """
        frame = self.frame(name)
        self.check_recorded(name)
        return frame

    def check_recorded(self, name: str) -> None:
        """Raise an error for a table that was not recorded.

        Raises:
            NotRecordedError: The table was not recorded.
            UserError: There is no table of that name, or this engine does not produce it.
        """
        self.plain(name)
        if not self.recorded(name):
            raise self._not_recorded(name)

    def recorded(self, name: str) -> bool:
        """Whether a table was recorded; it may still be empty because nothing happened."""
        return name in self._recorded and self.has_table(name)

    def frame(self, name: str) -> pl.DataFrame:
        """One table, as in :meth:`table`; empty if it was not recorded.

        Raises:
            UserError: There is no table of that name, or this engine does not produce it.
        """
        from anabranch.result.table import for_user

        if name not in self._frames:
            self._frames[name] = for_user(self._engine_table(name))
        return self._frames[name]

    def plain(self, name: str) -> Table:
        """One table in plain Python; empty if it was not recorded.

        It has ``columns``, ``height``, ``table["flow"]``, ``rows()``, ``to_dict()``, ``to_dicts()`` and ``select(…)``.
        Iteration yields its rows. ``polars.DataFrame``, ``pyarrow.table`` and ``pandas.DataFrame.from_arrow`` accept it
        directly.

            >>> from anabranch import Scenario
            >>> result = Scenario.from_file("reordering.toml").set("duration", "2 s").run()
            >>> result.plain("flows").to_dicts()[0]["flow"]
            'main'

        Raises:
            UserError: There is no table of that name, or this engine does not produce it.
        """
        from anabranch.result.table import Table

        if name not in self._tables:
            self._tables[name] = Table.of_any(self._engine_table(name))
        return self._tables[name]

    def _engine_table(self, name: str) -> Any:
        from anabranch.errors import UserError, nearest

        if name not in TABLES and name != RETRANSMISSIONS:
            raise UserError(f'there is no table "{name}"', hint=nearest(name, TABLES))
        try:
            return self._run.table(name)
        except KeyError:
            raise UserError(f'this engine does not make table "{name}"') from None

    def pcapng(self, capture: str) -> bytes:
        """A capture as the content of a pcapng file: raw IP, nanoseconds, each packet's outcome on the link as comment.

        Args:
            capture: A link, or one direction of it, among the ``captures`` of the run.

        Raises:
            NotRecordedError: It was not captured.
            UserError: There is no such link.
        """
        from anabranch.errors import NotRecordedError
        from anabranch.files.capture import place
        from anabranch.text.spoken import argument

        found = place(capture, self.links)
        try:
            return bytes(self._run.pcapng(found.link, found.direction))
        except ValueError:
            wanted = argument("captures", f"{[capture]!r}")
            raise NotRecordedError(f"{capture} was not captured", hint=f"pass {wanted}") from None

    def diagnose(self, capture: str, file: str | Path) -> Diagnosis:
        """Write a capture to a file and diagnose it, as if the run were a network.

        The tables of the diagnosis have the columns ``flow`` and ``flow_direction`` of the run's tables, and their
        ``sequence_bytes`` counts from the same origin.

        Args:
            capture: A link, or one direction of it, among the ``captures`` of the run.
            file: The file for the capture.

        Raises:
            NotRecordedError: It was not captured.
            UserError: There is no such link, or a flow has several connections.
        """
        from anabranch.diagnosis.diagnosis import diagnose_run

        return diagnose_run(self, capture, Path(file))

    def packet_parts(self, columns: Sequence[str] | None = None, rows: int = PART_ROWS) -> Iterator[pl.DataFrame]:
        """The table ``packets`` in parts that fit into memory; one empty part if it was not recorded.

        Args:
            columns: The columns; default: all.
            rows: Rows of a part; the last may have fewer.
        """
        from anabranch.result.table import for_user

        for part in self._run.packet_batches(rows, None if columns is None else list(columns)):
            yield for_user(part)

    def plain_parts(self, columns: Sequence[str] | None = None, rows: int = PART_ROWS) -> Iterator[Table]:
        """The same parts in plain Python."""
        from anabranch.result.table import Table

        for part in self._run.packet_batches(rows, None if columns is None else list(columns)):
            yield Table.of_any(part)

    @property
    def left_out_packets(self) -> int:
        """Number of packets missing from the table ``packets``, because it was full when they were sent."""
        return self._run.left_out_packets()

    def has_table(self, name: str) -> bool:
        """Whether the engine produces a table, recorded or not."""
        from anabranch.errors import UserError

        if name == "packets":
            # The complete table may have many gigabytes.
            return True
        try:
            self.plain(name)
        except UserError:
            return False
        return True

    def why(self) -> Why:
        """The trigger of each retransmission, whether it was needed, and the events of the congestion window.

        Raises:
            NotRecordedError: The run did not record packets.
            UserError: The trace of a live run is missing or incomplete.
        """
        from anabranch.errors import UserError
        from anabranch.result.remarks import untraced
        from anabranch.why import inspect

        if self._why is not None:
            return self._why
        if self.live is not None and (reason := untraced(self.live, self.summary.get("engine"))) is not None:
            raise UserError(f"the kernel's TCP was not traced, and packets alone do not say why: {reason}")
        if self.live is not None and (lost := self.live["trace"]["lost_records"]):
            raise UserError(
                f"{lost} records of the kernel's TCP were lost; the others do not explain every retransmission",
                hint="run again where the machine is less busy",
            )

        if not self.recorded("packets"):
            raise self._not_recorded("packets")
        events = self.plain("window_events") if self.has_table("window_events") else None
        self._why = inspect(self.plain(RETRANSMISSIONS), events)
        return self._why

    def plot(
        self,
        chart: str | None = None,
        *,
        x: str | None = None,
        y: str | None = None,
        color: str | None = None,
        table: str | None = None,
        ax: Axes | None = None,
        hue: str | None = None,
    ) -> Axes:
        """Draw one chart of the report, or one column of a table over another.

            >>> from anabranch import Scenario
            >>> result = Scenario.from_file("reordering.toml").set("duration", "2 s").run(samples_ms=10)
            >>> result.plot("cwnd").get_ylabel()
            'cwnd (packets)'
            >>> result.plot(y="queue_packets", table="link_samples").get_xlabel()
            'time (s)'

        Args:
            chart: ``"goodput"``, ``"cwnd"``, ``"srtt"``, ``"queue"``, ``"sequence"`` or ``"reordering"``.
            x: Instead of ``chart``: the column for the x axis (default: ``"time_s"``).
            y: The column for the y axis. Columns may be given by short names: ``"cwnd"``.
            color: A column with one line for each of its values; default: the flow, link or group.
            table: The table that has the columns; default: the first that has all of them.
            ax: The axes to draw into; default: axes of a new figure.
            hue: The same as ``color``.

        Raises:
            NotRecordedError: The run did not record the data to draw.
            UserError: There is no such chart or column, or the run has no data for it.
        """
        from anabranch.plot.result import plot_chart, plot_columns

        if chart is not None and y is None:
            return plot_chart(self, chart, ax)
        return plot_columns(self, x=x or "time_s", y=y, color=color or hue, table=table, ax=ax)

    def _not_recorded(self, name: str) -> UserError:
        from anabranch.errors import NotRecordedError
        from anabranch.text.spoken import argument

        if name == "ack_samples" and self.live is None:
            return NotRecordedError("ack_samples was not recorded", hint="live runs record it")
        wanted = {"packets": argument("packets", True), "window_events": argument("packets", True),
                  "ack_samples": argument("trace", "'acks'")}.get(name, argument("samples_ms", 10))  # fmt: skip
        return NotRecordedError(f"{name} was not recorded: pass {wanted}")

    def write(self, directory: str | Path, *, figures: bool = False) -> None:
        """Write summary, tables and report into a directory, which appears whole or not at all.

        Args:
            directory: The directory to write.
            figures: Write each chart of the report as PDF, SVG and PNG as well.

        Raises:
            UserError: The directory holds something else.
        """
        from anabranch.report.run_output import write_run

        write_run(self, Path(directory), figures=figures)

    def __repr__(self) -> str:
        from anabranch.result.format import run_text

        return run_text(self)

    def _repr_html_(self) -> str:
        from anabranch.report.run_output import html_tables

        return html_tables(self)


class LiveRunResult(RunResult):
    """The result of one live run. Unlike in the simulator, rates may be ``None``: for a program of the user's."""

    @property
    def flows(self) -> dict[str, AnyFlowSummary]:  # type: ignore[override]
        """Per flow: goodput, retransmissions, mean cwnd and more."""
        return cast("dict[str, AnyFlowSummary]", self.summary["flows"])
