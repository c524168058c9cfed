"""``anabranch validate``."""

from __future__ import annotations

from pathlib import Path

from anabranch.cli.common import console, load_scenario, print_json
from anabranch.validate import Comparison, compare, problems, summary

MAX_SEEDS = 1000


def run_validate(files: list[Path], sets: list[str], seeds: int, *, as_json: bool) -> None:
    """Compare, print, and fail where the engines do not agree.

    Raises:
        ScenarioError: A scenario is wrong, or cannot run live.
        UserError: An option is wrong, or this machine cannot run live.
        RunFailedError: The engines are further apart than they may be, or too many live runs are tainted.
    """
    from anabranch.errors import RunFailedError, UserError
    from anabranch.live import prepare
    from anabranch.progress import Progress

    if not 1 <= seeds <= MAX_SEEDS:
        raise UserError(f"--seeds is {seeds}; expected 1 to {MAX_SEEDS}")
    prepare()
    comparisons = []
    for file in files:
        scenario = load_scenario(file, sets)
        with Progress(file.name, 1) as progress:
            comparisons.append(compare(scenario, str(file), seeds=seeds, progress=progress.update))
    if as_json:
        print_json(
            {"scenarios": [comparison.document() for comparison in comparisons], "summary": summary(comparisons)}
        )
    else:
        _print(comparisons)
    wrong = problems(comparisons)
    if wrong:
        raise RunFailedError("; ".join(wrong))


def _print(comparisons: list[Comparison]) -> None:
    from rich import box
    from rich.table import Table

    from anabranch.report.format import figure

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("scenario", "metric", "sim", "live", "error", "live against\nlive"):
        table.add_column(heading, justify="left" if heading in ("scenario", "metric") else "right")
    for comparison in comparisons:
        name = Path(comparison.file).name
        if comparison.tainted:
            table.add_row(name, "tainted", "–", "–", "–", "–")
        for metric, figures in comparison.metrics.items():
            # Retransmissions: in standard deviations of a count; everything else is a share.
            ratio = metric != "retransmitted_packets"
            table.add_row(
                name, metric, figure(figures["sim"]), figure(figures["live"]),
                figure(figures["relative_error"], ratio=ratio), figure(figures["live_against_live"], ratio=ratio),
            )  # fmt: skip
    out = console()
    out.print(table)
    tainted = sum(comparison.tainted_runs for comparison in comparisons)
    runs = sum(comparison.live_runs for comparison in comparisons)
    out.print(f"{runs} live runs, {tainted} of them tainted; errors of retransmitted_packets in square roots of counts")
