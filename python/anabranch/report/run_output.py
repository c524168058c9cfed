"""What ``anabranch run --out`` writes: summary, tables, one HTML report, and figures where they are asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.output import whole_directory, write_parquet, write_parquet_parts
from anabranch.report.columns import RunColumns, sequence_flow
from anabranch.report.format import end, figure
from anabranch.report.page import page, table, text
from anabranch.report.remarks import limits, replays, surprises, times
from anabranch.report.why import episodes, told_on_click

if TYPE_CHECKING:
    from anabranch.report.columns import Chart
    from anabranch.result import RunResult


def write_run(
    result: RunResult, directory: Path, captures: Sequence[tuple[str, Path]] = (), *, figures: bool = False
) -> None:
    """Write everything; the directory appears whole or not at all.

    Args:
        result: The run.
        directory: Where.
        captures: Captures of the run that are kept with it, and their paths in the directory.
        figures: Draw each chart as PDF, SVG and PNG, too.

    Raises:
        UserError: The directory holds something else.
        RunFailedError: It cannot be written.
    """
    from anabranch.result import PART_ROWS, TABLES

    columns = RunColumns(result)
    with whole_directory(directory, "run") as aside:
        (aside / "summary.json").write_text(result.summary_json.rstrip() + "\n", encoding="utf-8")
        if result.recorded("packets") and _has_packets(result):
            write_parquet_parts(aside / "packets.parquet", result.packet_parts(), PART_ROWS)
        for name in TABLES:
            if name == "packets" or not result.has_table(name):
                continue
            frame = result.frame(name)
            # A table that was not recorded is left out: an empty one would say that nothing happened.
            # Window events are recorded with the packets: then none means that nothing happened.
            recorded = name in ("flows", "links") or (name == "window_events" and _says_why(result))
            if frame.height > 0 or recorded:
                write_parquet(aside / f"{name}.parquet", frame)
        if figures:
            _draw(columns, aside / "figures")
        (aside / "report.html").write_text(html_report(result, columns), encoding="utf-8")
        for capture, path in captures:
            (aside / path).parent.mkdir(parents=True, exist_ok=True)
            (aside / path).write_bytes(result.pcapng(capture))


def _draw(columns: RunColumns, directory: Path) -> None:
    from anabranch.plot import run as run_figures
    from anabranch.plot.style import house_style, save

    with house_style():
        for name, drawn in run_figures.figures(columns):
            save(drawn, directory / name)


def _has_packets(result: RunResult) -> bool:
    return next(result.packet_parts(["flow"], 1)).height > 0


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


def html_report(result: RunResult, columns: RunColumns | None = None) -> str:
    """The report of a run as one page that needs nothing else."""
    summary = result.summary
    charts = list((columns or RunColumns(result)).charts())
    title = summary.get("scenario") or "Scenario"
    facts = [f"seed {summary.get('seed')}", f"{figure(summary.get('duration_s'))} s "
             + ("live" if result.live is not None else "simulated"),
             f"anabranch {summary.get('anabranch_version')}"]  # fmt: skip
    if result.digest:
        facts.append(f"digest <code>{text(result.digest)}</code>")
    body = [f"<h1>{text(title)}</h1>", f"<p class='soft'>{' · '.join(facts)}</p>", *_taint(result), _flows(result),
            _links(result)]  # fmt: skip
    if result.groups:
        body.append(_groups(result))
    if result.gateways:
        body.append(_gateways(result))
    body += _remarks(result)
    if charts:
        body.append(
            "<p class='hint'>Drag across a chart to zoom all of them in time; double-click to see the whole run.</p>"
        )
    why = result.why() if _says_why(result) else None
    for chart in charts:
        body.append(_chart(chart))
        if why is not None and chart.name == "sequence":
            body.append(told_on_click(why, sequence_flow(result)))
    if why is not None:
        body.append(episodes(why))
    resolved = json.dumps(summary.get("resolved_scenario", {}), indent=2, ensure_ascii=False)
    body.append(
        "<h2>Scenario</h2><details><summary>With every default written out</summary>"
        f"<pre>{text(resolved)}</pre></details>"
    )
    return page(str(title), "\n".join(body), charts=charts)


def _taint(result: RunResult) -> list[str]:
    from anabranch.live import taint, taint_advice

    reasons = taint(result)
    if not reasons:
        return []
    told = f"Tainted: these figures are no result. {'; '.join(reasons)}. {taint_advice(result)}."
    return [f"<p><strong>{text(told)}</strong></p>"]


def _remarks(result: RunResult) -> list[str]:
    told = [*limits(result), *times(result), *replays(result), *surprises(result)]
    if not told:
        return []
    return [f"<h2>Remarks</h2><ul>{''.join(f'<li>{text(remark)}</li>' for remark in told)}</ul>"]


def _says_why(result: RunResult) -> bool:
    if result.live is not None and (result.live["trace"]["detail"] is None or result.live["trace"]["lost_records"]):
        return False
    return _has_packets(result) and result.has_table("window_events")


def _chart(chart: Chart) -> str:
    about = f"<p class='soft'>{text(chart.about)}</p>" if chart.about else ""
    return f"<h2>{text(chart.title)}</h2>{about}<div class='chart' id='chart-{chart.name}'></div>"


def _flows(result: RunResult) -> str:
    rows = (
        (name, figure(f.get("goodput_mbit_s")), figure(f.get("throughput_mbit_s")), figure(f.get("mean_srtt_ms")),
         figure(f.get("mean_cwnd_packets")), figure(f.get("sent_packets")), figure(f.get("retransmitted_packets")),
         figure(f.get("spurious_retransmissions")), figure(f.get("fast_recoveries")), figure(f.get("timeouts")),
         figure(f.get("reordered_ratio"), ratio=True), figure(f.get("flow_completion_time_s")), end(f))
        for name, f in result.flows.items()
    )  # fmt: skip
    return "<h2>Flows</h2>" + table(
        ("flow", "goodput (Mbit/s)", "throughput (Mbit/s)", "srtt (ms)", "cwnd (packets)", "sent (packets)",
         "retransmitted", "of them spurious", "fast recoveries", "timeouts", "reordered", "completion time (s)",
         "ended"), rows,
    )  # fmt: skip


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
