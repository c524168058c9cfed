"""Compare single flows with the same flows in ns-3, row by row.

    python tools/compare_ns3.py            prints ours beside theirs
    python tools/compare_ns3.py --write    also writes the tables of docs/validation/ns3-single-flow.md
    python tools/compare_ns3.py --check    compares the page instead; exit status 1 when it is out of date

Exit status 1 also when a row is outside its tolerance and the page does not explain it, or is inside
and the page still lists it as an outlier. ``tests/oracle`` runs the same comparison.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch import _engine as engine
from anabranch.statistics import mean_interval, t_quantile

from reference import markdown

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "oracle" / "data"
PAGE = "docs/validation/ns3-single-flow.md"

SEEDS = 20
"""Runs of a row with random loss."""

NEW_RENO_LOSS_FREE = 0.03
NEW_RENO_LOSSY = 0.05
CUBIC = 0.08

OUR_NEW_RENO = '{ kind = "reno", avoidance = "acks" }'
"""As ns-3's documentation has it: cwnd grows by the number of ACKs, so that delayed ACKs slow it down."""

OUR_CUBIC = (
    '{{ kind = "cubic", tcp_friendly = {friendly}, count = "segments", reduce_from = "cwnd", '
    'first_epoch_growth = 0.05, slow_start_limit = "2 packets", hystart = "linux", hystart_delay_max = "1 s" }}'
)
"""ns-3's attributes (CntClamp 20 and its help, HyStartDelayMax 1 s), RFC 8312, its source by its manual (ssthresh from
cwnd), and its traces (slow start adds what an ACK acknowledges: two segments)."""

CONTROLS = {
    ("3.37", "NewReno"): OUR_NEW_RENO,
    ("3.44", "NewReno"): OUR_NEW_RENO,
    ("3.37", "Cubic"): OUR_CUBIC.format(friendly="false"),
    ("3.44", "Cubic"): OUR_CUBIC.format(friendly="true"),
}

Settings = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Route:
    """What differs between the rows of one control."""

    base_rtt_ms: int
    queue_packets: int
    loss_rate: float


@dataclass(frozen=True)
class Theirs:
    """A row of ns-3's figures."""

    version: str
    cc: str
    path: Route
    seeds: int
    goodput: float
    lowest: float
    highest: float
    cwnd: float
    retransmitted: float
    fast_recoveries: float
    timeouts: float
    recovery: str
    sd: float | None


@dataclass(frozen=True)
class Ours:
    """The same flow here: means over the seeds."""

    goodput: float
    half_width: float | None
    cwnd: float
    retransmitted: float
    fast_recoveries: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of ns-3's figures, ours, and the range that ours should be in."""

    theirs: Theirs
    ours: Ours
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether our goodput is within the tolerance."""
        return self.low <= self.ours.goodput <= self.high

    @property
    def key(self) -> tuple[str, str, int, int, float]:
        """What names the row: version, control, RTT, queue, loss rate."""
        path = self.theirs.path
        return (self.theirs.version, self.theirs.cc, path.base_rtt_ms, path.queue_packets, path.loss_rate)


OUTLIERS = frozenset({("3.37", "Cubic", 20, 17, 0.01), ("3.37", "Cubic", 70, 58, 0.001)})
"""Rows known to be outside; the page says why."""


def read(name: str) -> list[Theirs]:
    """Read a table of ns-3's figures; the controls that are compared here."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Theirs(
            version=row["ns3_version"],
            cc=row["cc"],
            path=Route(int(row["base_rtt_ms"]), int(row["queue_packets"]), float(row["loss_rate"])),
            seeds=int(row["seeds"]),
            goodput=float(row["goodput_mbit_s"]),
            lowest=float(row.get("goodput_min") or row["goodput_mbit_s"]),
            highest=float(row.get("goodput_max") or row["goodput_mbit_s"]),
            cwnd=float(row["mean_cwnd_segments"]),
            retransmitted=float(row["retransmitted_packets"]),
            fast_recoveries=float(row["fast_recoveries"]),
            timeouts=float(row["timeouts"]),
            recovery=row.get("recovery") or "prr",
            sd=float(row["goodput_sd"]) if row.get("goodput_sd") else None,
        )
        for row in rows
        if row["cc"] in {cc for _, cc in CONTROLS}
    ]


def sets(path: Route, control: str) -> list[str]:
    """Return what turns the scenario file into one path with one congestion control."""
    rtt = path.base_rtt_ms
    return [
        f'link.access.delay="{rtt / 8:g} ms"',
        f'link.bottleneck.delay="{rtt / 4:g} ms"',
        f'link.egress.delay="{rtt / 8:g} ms"',
        f'link.bottleneck.queue.limit="{path.queue_packets} packets"',
        f"link.bottleneck.forward.impair.0.rate={path.loss_rate}",
        f"flow.main.cc={control}",
    ]


def simulate(cases: Iterable[tuple[Route, str]], seeds: int = SEEDS) -> dict[tuple[Route, str], Ours]:
    """Run each path with each control once, on all cores; loss-free ones with one seed."""
    file = DATA / "ns3-single-flow.toml"
    text = file.read_text("utf-8")
    wanted = list(dict.fromkeys(cases))
    counts = [seeds if path.loss_rate > 0 else 1 for path, _ in wanted]
    jobs: list[tuple[str, str, list[str], int | None]] = [
        (text, file.name, sets(path, control), seed)
        for (path, control), count in zip(wanted, counts, strict=True)
        for seed in range(1, count + 1)
    ]
    flows = iter([json.loads(run.summary_json)["flows"]["main"] for run in engine.run_many(jobs, digest=False)])
    return {case: _means([next(flows) for _ in range(count)]) for case, count in zip(wanted, counts, strict=True)}


def _means(flows: Sequence[Mapping[str, float]]) -> Ours:
    def mean(name: str) -> float:
        return math.fsum(flow[name] for flow in flows) / len(flows)

    interval = mean_interval([flow["goodput_mbit_s"] for flow in flows])
    return Ours(
        goodput=interval.mean,
        half_width=None if interval.upper is None else interval.upper - interval.mean,
        cwnd=mean("mean_cwnd_packets"),
        retransmitted=mean("retransmitted_packets"),
        fast_recoveries=mean("fast_recoveries"),
        timeouts=mean("timeouts"),
    )


def accepted(row: Theirs, table: Sequence[Theirs]) -> tuple[float, float]:
    """Return the range in which our goodput should be."""
    if row.cc == "Cubic":
        return row.goodput * (1 - CUBIC), row.goodput * (1 + CUBIC)
    both = [other for other in table if (other.cc, other.path) == (row.cc, row.path)]
    share = NEW_RENO_LOSSY if row.path.loss_rate > 0 else NEW_RENO_LOSS_FREE
    return min(other.lowest for other in both) * (1 - share), max(other.highest for other in both) * (1 + share)


def compare(table: Sequence[Theirs], settings: Settings = CONTROLS, seeds: int = SEEDS) -> list[Row]:
    """Set ours beside each of their rows."""
    ours = simulate(((row.path, settings[row.version, row.cc]) for row in table), seeds)
    return [Row(row, ours[row.path, settings[row.version, row.cc]], *accepted(row, table)) for row in table]


def tables(rows: Sequence[Row], more: Sequence[Theirs]) -> dict[str, str]:
    """Return the page's generated parts by name."""
    parts = {cc: _table([row for row in rows if row.theirs.cc == cc]) for cc in ("NewReno", "Cubic")}
    parts["more-seeds"] = _more_seeds(rows, more)
    parts["recovery"] = _recovery(rows, more)
    parts["verdict"] = _verdict(rows)
    return parts


def _verdict(rows: Sequence[Row]) -> str:
    lines = []
    for cc in ("NewReno", "Cubic"):
        for lossy in (False, True):
            some = [row for row in rows if row.theirs.cc == cc and (row.theirs.path.loss_rate > 0) == lossy]
            within = sum(row.inside for row in some)
            kind = "with random loss" if lossy else "without random loss"
            lines.append(f"- {cc}, {kind}: {within} of {len(some)} rows within the tolerance\n")
    some = [row for row in rows if row.theirs.cc == "Cubic" and row.theirs.path.loss_rate > 0]
    within = sum(near_the_seeds(row) for row in some)
    share = f"the range of its version's seeds ± {CUBIC:.0%}"
    lines.append(f"- Cubic, with random loss, judged as NewReno is, by {share}: {within} of {len(some)} rows\n")
    return "".join(lines)


def _table(rows: Sequence[Row]) -> str:
    head = ["ns-3", "RTT", "queue", "loss", "goodput there", "here", "difference", "accepted", "", "sent again"]
    head += ["fast recoveries", "timeouts", "mean cwnd"]
    return markdown.table(head, (_cells(row) for row in rows))


def _cells(row: Row) -> list[str]:
    theirs, ours = row.theirs, row.ours
    goodput = f"{theirs.goodput:.3f}"
    if theirs.lowest < theirs.highest:
        goodput += f" ({theirs.lowest:.3f}–{theirs.highest:.3f})"
    return [
        theirs.version,
        *_route(theirs.path),
        goodput,
        _here(ours),
        f"{ours.goodput / theirs.goodput - 1:+.1%}",
        f"{row.low:.3f}–{row.high:.3f}",
        "inside" if row.inside else "**outside**",
        _both(theirs.retransmitted, ours.retransmitted),
        _both(theirs.fast_recoveries, ours.fast_recoveries),
        _both(theirs.timeouts, ours.timeouts),
        _both(theirs.cwnd, ours.cwnd),
    ]


def _route(path: Route) -> list[str]:
    return [f"{path.base_rtt_ms} ms", str(path.queue_packets), f"{path.loss_rate:.1%}" if path.loss_rate else "0"]


def _here(ours: Ours) -> str:
    spread = "" if ours.half_width is None else f" ± {ours.half_width:.3f}"
    return f"{ours.goodput:.3f}{spread}"


def _both(theirs: float, ours: float) -> str:
    return f"{theirs:.1f} / {ours:.1f}"


def _more_seeds(rows: Sequence[Row], more: Sequence[Theirs]) -> str:
    """CUBIC under loss: the reference's three seeds, more seeds of the same version, and ours."""
    body = []
    for row in rows:
        theirs = row.theirs
        many = find(more, theirs)
        if theirs.cc != "Cubic" or many is None or many.sd is None:
            continue
        half = mean_half_width(many)
        body.append(
            [
                theirs.version,
                *_route(theirs.path),
                f"{theirs.goodput:.3f} ({theirs.seeds})",
                f"{many.goodput:.3f} ± {half:.3f} ({many.seeds})",
                f"{theirs.goodput / many.goodput - 1:+.1%}",
                _here(row.ours),
                f"{row.ours.goodput / many.goodput - 1:+.1%}",
            ]
        )
    head = ["ns-3", "RTT", "queue", "loss", "reference (seeds)", "more seeds", "reference against more seeds", "here"]
    return markdown.table([*head, "here against more seeds"], body)


def _recovery(rows: Sequence[Row], more: Sequence[Theirs]) -> str:
    """ns-3's two recoveries, where both were run; with random loss over more seeds than the reference has."""
    body = []
    for row in rows:
        theirs = row.theirs if row.theirs.path.loss_rate == 0 else find(more, row.theirs)
        classic = find(more, row.theirs, recovery="classic")
        if theirs is None or classic is None:
            continue
        figures = [_figures(run) for run in (theirs, classic, row.ours)]
        body.append([theirs.cc, theirs.version, *_route(theirs.path), *figures])
    return markdown.table(["", "ns-3", "RTT", "queue", "loss", "PRR there", "classic recovery there", "here"], body)


def _figures(run: Theirs | Ours) -> str:
    return f"{run.goodput:.3f} ({run.fast_recoveries:.0f} / {run.retransmitted:.0f})"


def near_the_seeds(row: Row) -> bool:
    """Whether our mean is within CUBIC's tolerance of the range of the reference's few seeds."""
    return row.theirs.lowest * (1 - CUBIC) <= row.ours.goodput <= row.theirs.highest * (1 + CUBIC)


def find(more: Sequence[Theirs], row: Theirs, recovery: str = "prr") -> Theirs | None:
    """Return the further runs of a row's flow, if there are any."""
    for other in more:
        if (other.version, other.cc, other.path, other.recovery) == (row.version, row.cc, row.path, recovery):
            return other
    return None


def mean_half_width(row: Theirs) -> float:
    """Half the 95 % interval of a row's mean over its seeds."""
    if row.sd is None:
        return 0.0
    return t_quantile(0.975, row.seeds - 1) * row.sd / math.sqrt(row.seeds)


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Put the generated parts into the page."""
    for name, text in parts.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{PAGE}: expected a part between {begin.strip()} and {end}")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def surprises(rows: Sequence[Row]) -> list[str]:
    """Return what the page does not say: rows outside without a reason, and reasons without a row."""
    lines = []
    for row in rows:
        if row.inside == (row.key in OUTLIERS):
            where = "inside, but listed as an outlier" if row.inside else f"outside {row.low:.3f}–{row.high:.3f}"
            lines.append(f"{row.key}: {row.ours.goodput:.3f} Mbit/s is {where}")
    return lines


def main() -> int:
    """Compare; print, write or check."""
    parser = argparse.ArgumentParser(description="Compare single flows with ns-3, row by row.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help=f"write the tables of {PAGE}")
    mode.add_argument("--check", action="store_true", help=f"compare with {PAGE} instead of printing")
    arguments = parser.parse_args()
    rows = compare(read("ns3-single-flow.csv"))
    parts = tables(rows, read("ns3-single-flow-more.csv"))
    status = 0
    if arguments.write or arguments.check:
        page = ROOT / PAGE
        current = page.read_text("utf-8")
        wanted = fill(current, parts)
        if arguments.write:
            aside = page.with_name(page.name + ".new")
            aside.write_text(wanted, "utf-8")
            aside.replace(page)
        elif wanted != current:
            print(f"{PAGE}: out of date: run python tools/compare_ns3.py --write", file=sys.stderr)
            status = 1
    else:
        for text in parts.values():
            print(text)
    for line in surprises(rows):
        print(line, file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
