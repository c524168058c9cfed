"""The output of ``anabranch run --out``: summary, tables, one HTML report, and on request figures."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.charts import place_all, stack
from anabranch.charts.columns import RunColumns
from anabranch.charts.pack import thinned
from anabranch.files.output import whole_directory
from anabranch.report.focus import part
from anabranch.report.many import distributions, percentiles, small_multiples
from anabranch.report.many import limits as limits_bars
from anabranch.report.page import page, table, text
from anabranch.report.topology import drawing
from anabranch.report.why import episodes, told_on_click
from anabranch.result.format import end, figure, made_by
from anabranch.result.remarks import LIMITS, replays, surprises, times
from anabranch.result.table_file import write_parts, write_table

if TYPE_CHECKING:
    from anabranch.charts import Chart
    from anabranch.result.result import RunResult


_AFTER_END = 1.05
"""End of the charts, as a multiple of the time at which the last flow has ended and nothing is in flight."""
_MOST_OF_RUN = 0.8
"""A run is drawn whole if flows are active for more than this share of it."""


def write_run(
    result: RunResult,
    directory: Path,
    captures: Sequence[tuple[str, Path]] = (),
    *,
    figures: bool = False,
    command: str = "",
) -> None:
    """Write everything; the directory appears whole or not at all.

    Args:
        result: The run.
        directory: The directory to write.
        captures: Captures of the run that are stored with it, and their paths in the directory.
        figures: Draw each chart as PDF, SVG and PNG, too.
        command: The command that made the run, as typed; the report shows it.

    Raises:
        UserError: The directory holds something else.
        RunFailedError: It cannot be written.
    """
    from anabranch.result.result import PART_ROWS
    from anabranch.result.summary import TABLES

    with whole_directory(directory, "run") as aside:
        (aside / "summary.json").write_text(result.summary_json.rstrip() + "\n", encoding="utf-8")
        # First, because the writer of the tables keeps its memory.
        _draw_all(result, aside, command, figures=figures)
        _trim()
        if result.recorded("packets") and _has_packets(result):
            write_parts(aside, "packets", result.packet_parts(), PART_ROWS)
        for name in TABLES:
            if name == "packets" or not result.has_table(name):
                continue
            height = result.plain(name).height
            # A table that was not recorded is omitted: an empty one would mean that nothing happened.
            # Window events are recorded with the packets, so an empty table of them does mean that.
            recorded = name in ("flows", "links") or (name == "window_events" and _says_why(result))
            if height > 0 or recorded:
                write_table(aside, name, result.frame(name))
        for capture, path in captures:
            (aside / path).parent.mkdir(parents=True, exist_ok=True)
            (aside / path).write_bytes(result.pcapng(capture))


def _trim() -> None:
    """Return freed memory to the system, where the C library has a function for it."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _draw_all(result: RunResult, directory: Path, command: str, *, figures: bool) -> None:
    columns = RunColumns(result)
    (directory / "report.html").write_text(html_report(result, columns, command), encoding="utf-8")
    if figures:
        _draw(columns, directory / "figures")


def _draw(columns: RunColumns, directory: Path) -> None:
    from anabranch.plot import run as run_figures
    from anabranch.plot.style import house_style, save

    with house_style():
        for name, drawn in run_figures.figures(columns):
            save(drawn, directory / name)


def _has_packets(result: RunResult) -> bool:
    return next(result.plain_parts(["flow"], 1)).height > 0


def html_tables(result: RunResult) -> str:
    """The tables of a run's figures, as a notebook shows them."""
    title = result.summary.get("scenario") or "Scenario"
    parts = [f"<p><b>{text(title)}</b>, seed {text(result.summary.get('seed'))}</p>", *_taint(result), _flows(result),
             _links(result)]  # fmt: skip
    if result.groups:
        parts.append(_groups(result))
    if result.gateways:
        parts.append(_gateways(result))
    return "\n".join(parts)


def html_report(result: RunResult, columns: RunColumns | None = None, command: str = "") -> str:
    """The report of a run as one self-contained page.

    Args:
        result: The run.
        columns: Its charts, if they exist already.
        command: The command that made the run, as typed.
    """
    summary, columns = result.summary, columns or RunColumns(result)
    charts = [thinned(chart) for chart in until_the_end(result, columns.charts())]
    title = summary.get("scenario") or "Scenario"
    facts = [f"seed {summary.get('seed')}", f"{figure(summary.get('duration_s'))} s "
             + made_by(summary),
             f"anabranch {summary.get('anabranch_version')}"]  # fmt: skip
    if result.digest:
        facts.append(f"digest <code>{text(result.digest)}</code>")
    body = [f"<h1>{text(title)}</h1>", f"<p class='soft'>{' · '.join(facts)}</p>", *_taint(result), _made_by(command)]
    if topology := drawing(summary.get("resolved_scenario", {})):
        body.append(f"<h2>Topology</h2>{topology}")
    body.append(_flows(result))
    body += _remarks(result)
    why = result.why() if _says_why(result) else None
    spread = list(distributions(result))
    if charts:
        body += ["<h2>Over time</h2>", stack(charts, part(result, columns.scan)), OVERLAY]
    if why is not None and any(chart.name == "sequence" for chart in charts):
        body.append(told_on_click(why, columns.scan.most_retransmitting() or "", columns.most_retransmitting))
    if why is not None:
        body.append(episodes(why))
    body.append(limits_bars(result, LIMITS))
    if spread:
        body.append(place_all(spread))
    samples = result.plain("samples")
    if samples.height:
        body.append(small_multiples(samples))
    body.append(_links(result))
    if result.groups:
        body.append(_groups(result))
    if result.gateways:
        body.append(_gateways(result))
    resolved = json.dumps(summary.get("resolved_scenario", {}), indent=2, ensure_ascii=False)
    body.append(
        "<h2>Scenario</h2><details><summary>With every default written out</summary>"
        f"<pre>{text(resolved)}</pre></details>"
    )
    drawn = [*charts, *spread]
    return page(str(title), "\n".join(body), charts=drawn, scripts=["ladder.js", "run.js"] if drawn else [])


def until_the_end(result: RunResult, charts: Iterable[Chart]) -> Iterator[Chart]:
    """The charts without the time after the last flow's end, if that is a large part of the run."""
    ends = [flow.get("ended_at_s") for flow in result.flows.values()]
    known = [end for end in ends if end is not None]
    last = max(*known, _last_in_flight(result), 0.0) * _AFTER_END
    if len(known) < len(ends) or last <= 0 or last >= _MOST_OF_RUN * float(result.summary.get("duration_s") or 0):
        yield from charts
        return
    for chart in charts:
        series = tuple(one.before(last) for one in chart.series)
        yield replace(chart, series=series, about=f"{chart.about} Until the last flow ended.".strip())


def _last_in_flight(result: RunResult) -> float:
    """Time of the last acknowledgment at a sender, which comes after the file is whole. 0 if no sender was sampled."""
    samples = result.plain("samples")
    times = samples.numbers("time_s")
    busy = times[samples.numbers("in_flight_packets") > 0]
    if not len(busy):
        return 0.0
    after = times[times > busy.max()]
    return float(after.min() if len(after) else busy.max())


OVERLAY = (
    "<p class='hint'>Drag across a chart or the small one above to choose a part; double-click shows everything. "
    "<label class='overlay'>Lay another run over this one (its report.html): "
    "<input type='file' id='overlay' accept='.html,text/html' aria-describedby='overlay-told'></label></p>"
    "<p class='hint' id='overlay-told' aria-live='polite'></p>"
)
"""Hint on the use of the charts. The other report is read inside the browser."""


def _made_by(command: str) -> str:
    return f"<pre class='command' aria-label='The command that made this run'>{text(command)}</pre>" if command else ""


def _taint(result: RunResult) -> list[str]:
    from anabranch.live import taint, taint_advice

    reasons = taint(result)
    if not reasons:
        return []
    told = f"Tainted: these figures are no result. {'; '.join(reasons)}. {taint_advice(result)}."
    return [f"<p><strong>{text(told)}</strong></p>"]


def _remarks(result: RunResult) -> list[str]:
    told = [*times(result), *replays(result), *surprises(result)]
    if not told:
        return []
    return [f"<h2>Remarks</h2><ul>{''.join(f'<li>{text(remark)}</li>' for remark in told)}</ul>"]


def _says_why(result: RunResult) -> bool:
    if result.live is not None and (result.live["trace"]["detail"] is None or result.live["trace"]["lost_records"]):
        return False
    return _has_packets(result) and result.has_table("window_events")


def _flows(result: RunResult) -> str:
    rows = (
        (name, figure(f.get("goodput_mbit_s")), figure(f.get("throughput_mbit_s")), figure(f.get("mean_srtt_ms")),
         figure(f.get("mean_cwnd_packets")), figure(f.get("sent_packets")), figure(f.get("retransmitted_packets")),
         figure(f.get("spurious_retransmissions")), figure(f.get("fast_recoveries")), figure(f.get("timeouts")),
         figure(f.get("reordered_ratio"), ratio=True), figure(f.get("flow_completion_time_s")), end(f))
        for name, f in result.flows.items()
    )  # fmt: skip
    every = table(
        ("flow", "goodput (Mbit/s)", "throughput (Mbit/s)", "srtt (ms)", "cwnd (packets)", "sent (packets)",
         "retransmitted", "of them spurious", "fast recoveries", "timeouts", "reordered", "completion time (s)",
         "ended"), rows,
    )  # fmt: skip
    over = percentiles(result)
    if not over:
        return f"<h2>Flows</h2>{every}"
    return f"<h2>Flows</h2>{over}<details><summary>All {len(result.flows)} flows</summary>{every}</details>"


def _groups(result: RunResult) -> str:
    rows = (
        (name, figure(k.get("mean_active_members")), figure(k.get("member_seconds_off")),
         figure(k.get("energy_joules")), figure(k.get("joules_per_gigabit")), figure(k.get("changes")),
         figure(k.get("lacpdus_sent")), figure(k.get("lacpdus_lost")))
        for name, k in result.groups.items()
    )  # fmt: skip
    return "<h2>Groups</h2>" + table(
        ("group", "mean active members", "member-seconds off", "energy (J)", "energy (J/Gbit)", "changes",
         "LACPDUs sent", "of them lost"), rows,
    )  # fmt: skip


def _gateways(result: RunResult) -> str:
    rows = (
        (name, direction, figure(k.get("released_packets")), figure(k.get("held_packets")),
         figure(k.get("gaps_given_up")), figure(k.get("duplicates_dropped")), figure(k.get("max_held_packets")),
         figure(k.get("mean_wait_ms")), figure(k.get("p95_wait_ms")), figure(k.get("silent_ms")))
        for name, directions in result.gateways.items()
        for direction, k in directions.items()
    )  # fmt: skip
    return "<h2>Gateways</h2>" + table(
        ("gateway", "direction", "released (packets)", "held", "gaps given up", "duplicates dropped",
         "max held (packets)", "mean wait (ms)", "p95 wait (ms)", "silent (ms)"), rows, left=2,
    )  # fmt: skip


def _links(result: RunResult) -> str:
    rows = (
        (name, direction, figure(k.get("sent_packets")), figure(k.get("dropped_packets")),
         figure(k.get("lost_packets")), figure(k.get("reordered_packets")), figure(k.get("utilization"), ratio=True),
         figure(k.get("mean_queue_packets")), figure(k.get("max_queue_packets")), figure(k.get("p95_queue_delay_ms")))
        for name, directions in result.links.items()
        for direction, k in directions.items()
    )  # fmt: skip
    return "<h2>Links</h2>" + table(
        ("link", "direction", "sent (packets)", "dropped", "lost", "reordered", "utilization", "mean queue (packets)",
         "max queue", "p95 queue delay (ms)"), rows, left=2,
    )  # fmt: skip
