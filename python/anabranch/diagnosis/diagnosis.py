"""Diagnosis of a capture's TCP connections or of a qlog: the limits of each, the cause of each retransmission."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from anabranch.diagnosis.document import Connection, DirectionName, Document, Limit, OneWay
from anabranch.diagnosis.engine import document
from anabranch.errors import UserError, nearest
from anabranch.extras import is_installed
from anabranch.result.table import Table
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from anabranch.result.result import RunResult

DIRECTIONS: tuple[DirectionName, DirectionName] = ("a_to_b", "b_to_a")
"""The names of both directions of a connection."""
RUN_DIRECTIONS = {"a_to_b": "forward", "b_to_a": "reverse"}
"""Names of the directions in the tables of a run: a flow's ``from`` sends the SYN."""


Row: TypeAlias = "dict[str, object]"
"""A row of a table."""


class Diagnosis(dict[str, Any]):
    """The document of ``anabranch diagnose --json``, and its lists as tables."""

    @property
    def content(self) -> Document:
        """The document, typed."""
        return cast("Document", self)

    def connection(self, number: int) -> Connection:
        """The connection with this number.

        Raises:
            UserError: There is none.
        """
        connections = self.content["connections"]
        for connection in connections:
            if connection["id"] == number:
                return connection
        numbers = [connection["id"] for connection in connections]
        expected = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
        asked = argument("connection", number)
        raise UserError(f"{asked}: {self['file']} has no such connection", hint=f"there are: {expected}")

    def table(self, name: str) -> pl.DataFrame:
        """One of :data:`TABLES` as a frame of polars, or in plain Python without polars.

        Each row has its connection and direction.

        The rows of a run's capture (:meth:`RunResult.diagnose`) have the columns ``flow`` and ``flow_direction``, by
        which they join with the tables of the run.

        Raises:
            UserError: There is no such table.
        """
        if name not in TABLES:
            raise UserError(f'a diagnosis has no table "{name}"', hint=nearest(name, TABLES))
        rows = list(TABLES[name](self))
        if not is_installed("polars"):
            return cast("pl.DataFrame", self._plain(name, rows))
        import polars as pl

        types = {column: getattr(pl, kind) for column, kind in COLUMNS[name].items()}
        if name == "stalls":
            types["packets"] = pl.List(pl.Int64)
        made = (
            pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None) if rows else pl.DataFrame(schema=types)
        )
        flows = {one["id"]: one["flow"] for one in self.content["connections"] if "flow" in one}
        if not flows:
            return made
        made = made.with_columns(pl.col("connection").replace_strict(flows, return_dtype=pl.String).alias("flow"))
        if "direction" in made.columns:
            made = made.with_columns(
                pl.col("direction").replace_strict(RUN_DIRECTIONS, return_dtype=pl.String).alias("flow_direction")
            )
        return made

    def _plain(self, name: str, rows: list[Row]) -> Table:
        flows = {one["id"]: one["flow"] for one in self.content["connections"] if "flow" in one}
        for row in rows if flows else ():
            row["flow"] = flows[cast("int", row["connection"])]
            if "direction" in row:
                row["flow_direction"] = RUN_DIRECTIONS[cast("DirectionName", row["direction"])]
        kinds = {column: _KINDS[kind] for column, kind in COLUMNS[name].items()}
        if name == "stalls":
            kinds["packets"] = "object"
        return Table.of_rows(rows, kinds)

    def plot(
        self,
        chart: str = "sequence",
        *,
        connection: int | None = None,
        direction: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw one chart of the report.

        The capture is read once more, at the place where it was when it was diagnosed.

        Args:
            chart: ``"sequence"``, ``"limits"`` or ``"rtt"``.
            connection: Its number; the one with the most data when left out.
            direction: ``"a_to_b"`` or ``"b_to_a"``; the one with more data when left out.
            ax: Where to draw; axes of a new figure when left out.

        Raises:
            UserError: There is no such chart or connection, or nothing of it to draw.
        """
        from anabranch.plot.capture import plot_chart

        return plot_chart(self, chart, connection, direction, ax)

    def plot_time_sequence(self, connection: int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw segments, retransmissions by verdict, SACK blocks and the edge of the window over time."""
        return self.plot("sequence", connection=connection, ax=ax)

    def annotate(self, target: str | Path, *, force: bool = False) -> None:
        """Write the capture as pcapng with the findings as packet comments.

        Args:
            target: The file.
            force: Also replace a file that anabranch did not make.

        Raises:
            UserError: The capture cannot be read any more, or the place cannot be written.
        """
        from anabranch.diagnosis.comments import annotated_file, write_annotated

        write_annotated(self, annotated_file(Path(target), Path(self["file"]), force=force))

    def write(self, directory: str | Path) -> None:
        """Write the document, its tables and the report, as ``anabranch diagnose --out`` does without a scenario.

        Raises:
            UserError: The directory holds something else, or the capture cannot be read any more.
        """
        from anabranch.report.capture_output import write_diagnosis

        write_diagnosis(self, Path(directory))


def diagnose(
    path: str | Path, *, any_expansion: bool = False, progress: Callable[[float], None] | None = None
) -> Diagnosis:
    """Diagnose the TCP connections of a capture, pcap or pcapng, or the QUIC connections of a qlog, compressed or not.

    Args:
        path: The capture or the qlog.
        any_expansion: Whether a compressed capture may expand to more than 256 times its size.
        progress: Called many times a second with the share that has been read, 0 to 1. It begins again if the
            packets are far out of order, so that the capture is read again.

    Raises:
        UserError: It is neither, or cannot be read.
    """
    return Diagnosis(json.loads(document(path, any_expansion=any_expansion, progress=progress)))


FIRST_PORT = 1024
"""The port of a run's first connection in its captures; the others follow."""


def diagnose_run(result: RunResult, capture: str, file: Path) -> Diagnosis:
    """Write a capture of a run and diagnose it; each connection has the name of its flow.

    Raises:
        NotRecordedError: It was not captured.
        UserError: There is no such link, or a flow has several connections.
    """
    from anabranch.files.capture_file import is_capture_of_ours
    from anabranch.files.output_file import output_file

    output_file(file, is_ours=is_capture_of_ours).write(result.pcapng(capture))
    found = diagnose(file)
    flows = list(result.flows)
    for connection in found.content["connections"]:
        number = int(connection["a"].rpartition(":")[2]) - FIRST_PORT
        if not 0 <= number < len(flows):
            raise UserError(
                "a flow with several connections cannot be joined with its run", hint=f"diagnose {file} by itself"
            )
        connection["flow"] = flows[number]
    return found


def directions(connection: Connection) -> Iterator[tuple[DirectionName, OneWay]]:
    """Both directions of a connection, by name."""
    for name in DIRECTIONS:
        yield name, connection["directions"][name]


def main_direction(connection: Connection) -> tuple[DirectionName, OneWay]:
    """The direction with more data."""
    return max(directions(connection), key=lambda one: one[1]["bytes"])


def ends_of(connection: Connection, direction: DirectionName) -> tuple[str, str]:
    """Sender and receiver of a direction."""
    ends = (connection["a"], connection["b"])
    return ends if direction == "a_to_b" else ends[::-1]


def shares(connection: Connection, direction: OneWay) -> dict[Limit, float]:
    """The limits of a direction as shares of the time until the last data, the largest first."""
    active = connection["duration_s"] - connection["quiet_s"]
    times = dict(direction["limits_s"])
    times["application"] -= direction["closing_s"]
    ranked = sorted(times.items(), key=lambda one: -one[1])
    return {limit: min(1.0, max(0.0, time) / active) if active > 0 else 0.0 for limit, time in ranked}


def _connections(document: Diagnosis) -> Iterator[Row]:
    for connection in document.content["connections"]:
        scalars = {name: value for name, value in connection.items() if not isinstance(value, dict | list)}
        scalars.pop("flow", None)
        # Null for TCP, and a table otherwise.
        scalars.pop("quic", None)
        yield {"connection": connection["id"], **scalars}


def _retransmissions(document: Diagnosis) -> Iterator[Row]:
    for connection in document.content["connections"]:
        for name, direction in directions(connection):
            for row in direction["retransmissions"]:
                # Numbered like the tables of a run: the first octet of data is 1, after the SYN.
                yield {"connection": connection["id"], "direction": name, **row, "sequence_bytes": row["seq"] + 1}


def _stalls(document: Diagnosis) -> Iterator[Row]:
    for connection in document.content["connections"]:
        for name, direction in directions(connection):
            for row in direction["stalls"]:
                yield {"connection": connection["id"], "direction": name, **row}


def _limits(document: Diagnosis) -> Iterator[Row]:
    for connection in document.content["connections"]:
        for name, direction in directions(connection):
            for limit, time in direction["limits_s"].items():
                yield {"connection": connection["id"], "direction": name, "limit": limit, "time_s": time}


TABLES: dict[str, Callable[[Diagnosis], Iterator[Row]]] = {
    "connections": _connections,
    "retransmissions": _retransmissions,
    "stalls": _stalls,
    "limits": _limits,
}
"""The tables of a diagnosis, and the functions that make their rows."""

COLUMNS: dict[str, dict[str, str]] = {
    "connections": {
        "connection": "Int64",
        "id": "Int64",
        "transport": "String",
        "a": "String",
        "b": "String",
        "start_s": "Float64",
        "duration_s": "Float64",
        "packets": "Int64",
        "handshake": "String",
        "syn_retransmissions": "Int64",
        "capture_point": "String",
    },
    "retransmissions": {
        "connection": "Int64",
        "direction": "String",
        "packet": "Int64",
        "time_s": "Float64",
        "seq": "Int64",
        "bytes": "Int64",
        "needed": "Boolean",
        "evidence": "String",
        "trigger": "String",
        "lost": "String",
        "earlier": "Int64",
        "sequence_bytes": "Int64",
    },
    "stalls": {
        "connection": "Int64",
        "direction": "String",
        "start_s": "Float64",
        "duration_s": "Float64",
        "cause": "String",
        "side": "String",
    },
    "limits": {"connection": "Int64", "direction": "String", "limit": "String", "time_s": "Float64"},
}
"""The columns that every table includes, and their types in polars."""
_KINDS = {"Int64": "i8", "Float64": "f8", "String": "text", "Boolean": "?"}
