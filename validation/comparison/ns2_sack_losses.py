"""ns-2's TCP with SACK over the loss rates of the study of error correction, for claim C8: ``docs/studies/fec.md``."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch import Study
from anabranch.study.results import Condition, Pool
from reference import markdown

from comparison.oracle import ROOT, read

NAME = "ns2-sack-losses"
LEAST = 0.8
"""The claim's minimum of the retransmission rate over the loss rate."""
QUEUES = {"50": "50 packets", "1000000": "unlimited"}
"""The sending host's queue, in ns-2 and in the study."""
FIGURES = ("fast_recoveries", "timeouts", "sent_packets", "retransmitted_packets")

Runs = Mapping[float, Sequence[Mapping[str, float]]]
"""Loss rate → the figures of each run."""


@dataclass(frozen=True)
class Setting:
    """One TCP with one queue of the sending host, at every loss rate."""

    where: str
    queue: str
    runs: Runs

    def mean(self, loss: float, figure: str) -> float:
        """Mean of a figure over the runs at a loss rate."""
        return statistics.fmean(run[figure] for run in self.runs[loss])

    def sent_again(self, loss: float) -> float:
        """The mean retransmission rate as in the study: each run has the same weight."""
        return statistics.fmean(run["retransmitted_packets"] / run["sent_packets"] for run in self.runs[loss])

    @property
    def falls(self) -> list[tuple[float, float]]:
        """Neighbouring loss rates of which the higher one does not have the higher retransmission rate."""
        pairs = itertools.pairwise(sorted(self.runs))
        return [(low, high) for low, high in pairs if self.sent_again(high) <= self.sent_again(low)]

    @property
    def least_over_loss(self) -> float:
        """The minimum retransmission rate over the loss rate."""
        return min(self.sent_again(loss) / loss for loss in self.runs)

    @property
    def holds(self) -> bool:
        """The second half of C8: the rate rises monotonically, and is at least 0.8 of the loss rate."""
        return not self.falls and self.least_over_loss >= LEAST


def theirs() -> list[Setting]:
    """Read ns-2's runs, made by ``ns2-sack-losses.tcl``: a row a seed."""
    rows = read(f"{NAME}.csv")
    return [
        Setting("ns-2", ours, _by_loss((float(r["loss"]), r) for r in rows if r["host_queue"] == queue))
        for queue, ours in QUEUES.items()
    ]


def ours(queues: Iterable[str] = QUEUES.values()) -> list[Setting]:
    """Run the study's ``sack`` at each of its loss rates."""
    study = Study.load(ROOT / "studies" / "fec").definition
    pool = Pool(study)
    made = []
    for queue in queues:
        jobs = [
            job
            for job in pool.plan(Condition(full=True, opens=(("host_queue", queue),)))
            if (job.experiment, job.variant) == ("losses", "sack")
        ]
        pool.make(jobs)
        runs = ((job.point[0], pool.outcomes[job.key].figures) for job in jobs)
        flow = ((loss, {name: figures[f"flow.main.{name}"] for name in FIGURES}) for loss, figures in runs)
        made.append(Setting("here", queue, _by_loss(flow)))
    return made


def _by_loss(runs: Iterable[tuple[float, Mapping[str, Any]]]) -> Runs:
    found: dict[float, list[dict[str, float]]] = {}
    for loss, figures in runs:
        found.setdefault(loss, []).append({name: float(figures[name]) for name in FIGURES})
    return found


def cells(setting: Setting, loss: float) -> list[str]:
    """The table's cells for a setting at a loss rate."""
    again = setting.sent_again(loss)
    return [
        f"{setting.mean(loss, 'fast_recoveries'):.1f}",
        f"{setting.mean(loss, 'timeouts'):.1f}",
        f"{again:.4%}",
        f"{again / loss:.2f}",
    ]


def parts(settings: Sequence[Setting]) -> dict[str, str]:
    """The generated parts of the page."""
    made = {}
    for queue in QUEUES.values():
        some = [setting for setting in settings if setting.queue == queue]
        head = ["Packet loss rate"]
        for where in (setting.where for setting in some):
            head += [f"{where}: fast recoveries", "timeouts", "retransmitted", "over the loss rate"]
        rows = [[f"{loss:g}", *(cell for one in some for cell in cells(one, loss))] for loss in sorted(some[0].runs)]
        made[f"ns2_{queue.split()[0]}"] = markdown.table(head, rows)
    head = ["TCP with SACK", "host's queue", "runs a row", "falls between", "least over the loss rate"]
    head.append("second half of C8")
    made["ns2"] = markdown.table(head, map(summary, settings))
    return made


def summary(setting: Setting) -> list[str]:
    """A row with the verdict on the claim's second half."""
    return [
        setting.where,
        setting.queue,
        str(min(map(len, setting.runs.values()))),
        ", ".join(f"{low:g} and {high:g}" for low, high in setting.falls) or "–",
        f"{setting.least_over_loss:.2f}",
        "holds" if setting.holds else "**fails**",
    ]


if __name__ == "__main__":
    for part in parts([*theirs(), *ours()]).values():
        print(part, end="\n\n")
