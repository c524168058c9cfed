"""A validation as text: the table of all metrics, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.live import MAX_TAINTED
from anabranch.result.format import NONE, figure
from anabranch.text import shown
from anabranch.validate import Comparison, Result
from anabranch.validate.judge import (
    BANDS,
    BLIND,
    OF_OTHERS,
    SHOWN,
    TELLING,
    TOLD_APART,
    holds,
    is_of_kernels,
    is_telling,
    needs_the_control,
    reference_runs,
    summary,
)
from anabranch.validate.measure import RETRANSMITTED, SHARES

_HEADINGS = ("scenario", "metric", "sim", "live", "error", "live against live", "other control", "blind formula", "")
_OF_KERNELS = {"live": "kernel", "live against live": "within a tick"}


def headings(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """The headings of the table."""
    words = _OF_KERNELS if is_of_kernels(comparisons) else {}
    return tuple(words.get(head, head) for head in _HEADINGS)


def rows(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, ...]]:
    """The cells of the table."""
    for comparison in comparisons:
        name = Path(comparison.file).stem
        if not comparison.results:
            yield name, "tainted" if comparison.tainted else "nothing to compare", *[NONE] * 6, ""
        for metric in SHOWN:
            result = comparison.results.get(metric)
            if result is None:
                continue
            # Retransmissions are in square roots of counts. All other metrics are shares.
            ratio = metric != RETRANSMITTED.name
            verdict = _verdict(result) if metric in TOLD_APART else ""
            told = [figure(part, ratio=ratio) for part in (result.error, result.floor, result.other, result.blind)]
            yield name, metric, *_values(metric, result.sim, result.live), *told, verdict


def _verdict(result: Result) -> str:
    if not holds(result):
        return "outside"
    return "" if is_telling(result) else "cannot tell"


def _values(metric: str, sim: dict[str, float], live: dict[str, float]) -> tuple[str, str]:
    """The mean over several groups; for shares, the share of each group in the file's order."""
    if metric == SHARES.name:
        return tuple(" : ".join(f"{of[group]:.3f}" for group in live) for of in (sim, live))  # type: ignore[return-value]
    mean = [sum(of.values()) / len(of) for of in (sim, live)]
    return figure(mean[0]), figure(mean[1])


def verdicts(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The verdicts of a validation, line by line."""
    told = summary(comparisons)
    theirs = reference_runs(comparisons)
    for metric, band in BANDS.items():
        if metric in told:
            figures = told[metric]
            yield (
                f"{metric}: median error {figure(figures['median'], ratio=True)}, at most {band:.0%} is expected; "
                f"90th percentile {figure(figures['p90'], ratio=True)}; {_medians_beside(figures)}"
            )
    for metric in TOLD_APART:
        if metric in told:
            within, count = told[metric]["within"], told[metric]["scenarios"]
            yield (
                f"{metric}: in {within:.0f} of {count:.0f} scenarios ({TELLING:.0%} is expected) the error is at most "
                f"{OF_OTHERS:g} of another control's, or at most the difference between {theirs}; in "
                f"{told[metric]['telling']:.0f} scenarios {theirs} differ by less than another control, and the error "
                f"is within these bounds in {told[metric]['within_telling']:.0f} of them"
            )
    usable = [comparison for comparison in comparisons if comparison.results]
    every = sum(
        all(holds(comparison.results[metric]) for metric in TOLD_APART if metric in comparison.results)
        for comparison in usable
    )
    yield f"all of these at once: in {every} of {len(usable)} scenarios (not judged)"
    blind = sum(needs_the_control(comparison) for comparison in usable)
    yield f"a formula blind to the control errs by more than {BLIND:.0%} in {blind} of {len(usable)} scenarios"
    for comparison in comparisons:
        if comparison.used_tainted:
            yield (
                f"{Path(comparison.file).name}: TAINTED: {comparison.used_tainted} of its live runs were too late or "
                "lost packets; its figures are no result"
            )
        if comparison.left_out:
            seeds = ", ".join(map(str, comparison.left_out))
            name = shown.plain(Path(comparison.file).name)
            yield f"{name}: left out: fewer than two live runs are untainted: seed {seeds}"
    if is_of_kernels(comparisons):
        yield f"{sum(one.live_runs for one in comparisons)} runs in Linux {_releases(comparisons)}, virtual time"
        return
    tainted = sum(comparison.tainted_runs for comparison in comparisons)
    runs = sum(comparison.live_runs for comparison in comparisons)
    yield f"{tainted} of {runs} live runs tainted; at most {MAX_TAINTED:.0%} is expected"


def _releases(comparisons: Sequence[Comparison]) -> str:
    return ", ".join(dict.fromkeys(str(one.machine.get("kernel", "?")) for one in comparisons))


def _medians_beside(figures: dict[str, float]) -> str:
    """The median errors of intentionally wrong answers."""
    told = (("median_other", "another control's answer"), ("median_blind", "the blind formula"))
    return ", ".join(f"{name} {figure(figures[key], ratio=True)}" for key, name in told if key in figures)


def page(comparisons: Sequence[Comparison]) -> str:
    """The same in Markdown."""
    lines = [f"- {line}" for line in verdicts(comparisons)]
    lines += ["", f"| {' | '.join(headings(comparisons))} |", f"|{' --- |' * len(_HEADINGS)}"]
    named = ([shown.markdown(name), *cells] for name, *cells in rows(comparisons))
    lines += [f"| {' | '.join(cells)} |" for cells in named]
    return "\n".join(lines) + "\n"
