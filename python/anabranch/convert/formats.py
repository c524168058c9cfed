"""Formats of ``anabranch convert``: description, recognition and lost properties of each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.text.spoken import argument


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        name: The value of ``--from`` and ``--to``.
        title: Its description.
        reader: The module whose ``read`` reads it, and the result: ``"scenario"``, ``"table"`` or ``"run"``.
        writer: The module whose ``write`` writes it, and the input: ``"scenario"``, ``"link"``, ``"table"``, ``"run"``,
            or ``"run or table"``.
        endings: Ends of file names that imply the output's format.
        recognised: How an input is recognised.
        lost: Properties lost in either direction.
    """

    name: str
    title: str
    reader: tuple[str, str] | None
    writer: tuple[str, str] | None
    endings: tuple[str, ...]
    recognised: str
    lost: str

    def recognise(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins with ``head`` has this format."""
        found: bool = self._module(self.reader).recognise(name, head)
        return found

    def read(self, *arguments: Any) -> Any:
        """Read the format."""
        return self._module(self.reader).read(*arguments)

    def write(self, *arguments: Any) -> Any:
        """Write the format."""
        return self._module(self.writer).write(*arguments)

    def _module(self, part: tuple[str, str] | None) -> Any:
        if part is None:
            raise LookupError(self.name)
        return importlib.import_module(f"anabranch.convert.{part[0]}")


FORMATS = (
    Format(
        "run",
        "results of a run: the directory of `run --out`, or the output of `run --json`",
        ("run_output", "run"),
        None,
        (),
        "a directory, or its keys `digest` and `anabranch_version`",
        "nothing; `run --json` has no tables, so it converts to paths and summaries only",
    ),
    Format(
        "scenario",
        "scenario file (TOML)",
        ("scenario_file", "scenario"),
        ("scenario_file", "scenario"),
        (".toml",),
        "by its name: `.toml`",
        "nothing",
    ),
    Format(
        "netem",
        "`tc qdisc` commands, or the output of `tc qdisc show`",
        ("netem", "scenario"),
        ("netem_script", "link"),
        (".sh", ".netem"),
        "a line with `tc qdisc` or `qdisc NAME HANDLE:`",
        "in: correlations, token buckets, slots, filters, the gap of reordering. "
        "out: flows, capacity traces, jitter by time slot, queues that Linux does not have",
    ),
    Format(
        "mahimahi",
        "mahimahi command line (`mm-delay`, `mm-loss`, `mm-link`)",
        ("mahimahi", "scenario"),
        ("mahimahi", "link"),
        (".mahimahi",),
        "a line with `mm-delay`, `mm-loss` or `mm-link`",
        "in: the program that runs inside, `--once`, `mm-onoff`, drop-head queues. "
        "out: fractions of a millisecond, bursts of loss, jitter, duplicates, queues but drop-tail, CoDel, PIE",
    ),
    Format(
        "mahimahi-trace",
        "mahimahi trace, a time in milliseconds per line",
        ("mahimahi_trace", "scenario"),
        None,
        (),
        "every line is a whole number",
        "nothing; both directions get the capacity, and 20 ms of delay",
    ),
    Format(
        "time-rate",
        "trace of time in s and rate in Mbit/s (Pensieve, FCC)",
        ("time_rate", "scenario"),
        None,
        (),
        "every line is two numbers",
        "in: detail finer than 1 ms or 1,500 bytes; the forward direction gets the capacity, and both 20 ms of delay",
    ),
    Format(
        "iperf3",
        "JSON of an iperf3 client (`iperf3 --json`)",
        ("iperf3", "table"),
        None,
        (),
        "its keys `start` and `test_start` or `cookie`",
        "in: omitted intervals, CPU times",
    ),
    Format(
        "flent",
        "flent data file",
        ("flent", "table"),
        ("flent", "run"),
        (".flent", ".flent.gz"),
        "by its name: `.flent`, `.flent.gz`; or its key `x_values`",
        "in: series other than rates, round-trip times and windows, raw values. out: packets and queues",
    ),
    Format(
        "flowmonitor",
        "ns-3 FlowMonitor XML",
        ("flowmonitor", "table"),
        None,
        (),
        "its root `<FlowMonitor>`",
        "in: histograms",
    ),
    Format(
        "graphml",
        "topology in GraphML (Internet Topology Zoo)",
        ("topology_graphml", "scenario"),
        None,
        (),
        "its root `<graphml>`",
        "in: attributes of edges but capacity, delay, length and weight; parallel edges, which are one link",
    ),
    Format(
        "gml",
        "topology in GML (Internet Topology Zoo)",
        ("topology_gml", "scenario"),
        None,
        (),
        "by its name: `.gml`; or a line with `graph [`",
        "in: as `graphml`",
    ),
    Format(
        "topohub",
        "topology in JSON, nodes and links with a traffic matrix (`topohub`, networkx)",
        ("topology_json", "scenario"),
        None,
        (),
        "its keys `nodes` and `links` or `edges`",
        "in: as `graphml`",
    ),
    Format(
        "qlog",
        "qlog, sequential (JSON-SEQ), with TCP's events",
        None,
        ("qlog", "run"),
        (".qlog", ".sqlog"),
        "",
        "out: pure ACKs, where the path drops a packet, queues",
    ),
    Format(
        "csv",
        "table with a row per time and flow, columns as in `samples`",
        None,
        ("csv_table", "run or table"),
        (".csv",),
        "",
        "out: all tables but `samples`",
    ),
    Format(
        "summary",
        "summary in the names of `run --json`",
        None,
        ("summary_json", "run or table"),
        (".json",),
        "",
        "out: how values change over time",
    ),
)
"""The formats, in the order in which an input is compared with them."""


def by_name(name: str, formats: tuple[Format, ...], name_of: str) -> Format:
    """A format by its name.

    Args:
        name: The format's.
        formats: The formats to search.
        name_of: The argument with the name, ``source`` or ``target``.

    Raises:
        UserError: There is none of that name.
    """
    found = next((f for f in formats if f.name == name), None)
    if found is None:
        what = "reads" if name_of == "source" else "writes"
        raise UserError(
            f'{argument(name_of, name)}: convert {what} no format "{name}"',
            hint=nearest(name, (f.name for f in formats)),
        )
    return found


def readable() -> tuple[Format, ...]:
    """Formats that are read."""
    return tuple(f for f in FORMATS if f.reader)


def writable() -> tuple[Format, ...]:
    """Formats that are written."""
    return tuple(f for f in FORMATS if f.writer)


def recognise(name: str, head: bytes) -> Format:
    """The format of an input.

    Raises:
        UserError: It has no known format.
    """
    for found in readable():
        if found.recognise(name, head):
            return found
    names = ", ".join(f.name for f in readable())
    raise UserError(f"{name}: its format is not recognised", hint=f"{argument('source', 'FORMAT')}: {names}")


def of_output(name: str) -> Format | None:
    """The format implied by an output's name."""
    lower = name.lower()
    return next((f for f in writable() if lower.endswith(f.endings)), None) if lower else None
