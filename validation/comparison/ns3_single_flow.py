"""Single flows of ns-3: ``docs/validation/ns3-single-flow.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.statistics.statistics import mean_interval, t_quantile
from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing, oracle
from comparison.judging import Verdict
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case
from comparison.runs import simulate as run_cases

NAME = "ns3-single-flow"

SPEC = oracle.spec(NAME)
NEW_RENO_LOSS_FREE: float = SPEC["tolerance"]["NewReno"]
NEW_RENO_LOSSY: float = SPEC["tolerance"]["NewReno, lossy"]
CUBIC: float = SPEC["tolerance"]["Cubic"]
WESTWOOD: float = SPEC["tolerance"]["Westwood"]

Settings = Mapping[tuple[str, str], str]
"""Our value of ``cc`` for each control of a version."""


def _settings(*controls: str) -> Settings:
    return {(version, cc): forms[cc] for version, forms in SPEC["controls"].items() for cc in controls}


CONTROLS = _settings("NewReno", "Cubic")
WESTWOODS = _settings("Westwood")


@dataclass(frozen=True)
class Route:
    """Parameters that differ between the rows of one control."""

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
    """The same flow in the simulator: means over the seeds."""

    goodput: float
    half_width: float | None
    cwnd: float
    retransmitted: float
    fast_recoveries: float
    timeouts: float


@dataclass(frozen=True)
class Row:
    """A row of ns-3's figures, ours, and the accepted range of ours."""

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
        """The row's key: version, control, RTT, queue, loss rate."""
        path = self.theirs.path
        return (self.theirs.version, self.theirs.cc, path.base_rtt_ms, path.queue_packets, path.loss_rate)


OUTLIERS = frozenset(tuple(key) for key in SPEC["outliers"])


def read(name: str, settings: Settings = CONTROLS) -> list[Theirs]:
    """Read a table of ns-3's figures, with the controls that have settings."""
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
        for row in oracle.read(name)
        if row["cc"] in {cc for _, cc in settings}
    ]


def sets(path: Route, control: str) -> list[str]:
    """Return the settings that turn the scenario file into one path with one congestion control."""
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
    """Run each path with each control once, on all cores; loss-free paths with one seed."""
    wanted = {
        (path, control): Case(f"{NAME}.toml", tuple(sets(path, control)), seeds if path.loss_rate > 0 else 1)
        for path, control in cases
    }
    runs = run_cases(wanted.values(), NAME)
    return {key: _means([run["flows"]["main"] for run in runs[case]]) for key, case in wanted.items()}


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
    """Return the accepted range of our goodput."""
    share = {"Cubic": CUBIC, "Westwood": WESTWOOD}.get(row.cc)
    if share is not None:
        return row.goodput * (1 - share), row.goodput * (1 + share)
    both = [other for other in table if (other.cc, other.path) == (row.cc, row.path)]
    share = NEW_RENO_LOSSY if row.path.loss_rate > 0 else NEW_RENO_LOSS_FREE
    return min(other.lowest for other in both) * (1 - share), max(other.highest for other in both) * (1 + share)


def compare(table: Sequence[Theirs], settings: Settings = CONTROLS, seeds: int = SEEDS) -> list[Row]:
    """Compare ours with each of ns-3's rows."""
    ours = simulate(((row.path, settings[row.version, row.cc]) for row in table), seeds)
    return [Row(row, ours[row.path, settings[row.version, row.cc]], *accepted(row, table)) for row in table]


def tables(rows: Sequence[Row], more: Sequence[Theirs]) -> dict[str, str]:
    """Return the page's generated parts by name."""
    parts = {cc: _table([row for row in rows if row.theirs.cc == cc]) for cc in ("NewReno", "Cubic")}
    parts["more-seeds"] = _more_seeds(rows, more)
    parts["recovery"] = _recovery(rows, more)
    return parts


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Judge by control, with and without random loss."""
    found = []
    for cc in ("NewReno", "Cubic"):
        for lossy in (False, True):
            some = [row for row in rows if row.theirs.cc == cc and (row.theirs.path.loss_rate > 0) == lossy]
            kind = "with random loss" if lossy else "without random loss"
            found.append(_verdict(f"{cc}, {kind}: rows within the tolerance", [row.inside for row in some]))
    some = [row for row in rows if row.theirs.cc == "Cubic" and row.theirs.path.loss_rate > 0]
    share = f"the range of its version's seeds ± {CUBIC:.0%}"
    found.append(
        _verdict(f"Cubic, with random loss, judged as NewReno is, by {share}", [near_the_seeds(row) for row in some])
    )
    return found


def _verdict(condition: str, inside: Sequence[bool]) -> Verdict:
    return Verdict(condition, f"{sum(inside)} of {len(inside)} rows", all(inside))


HEAD = ["ns-3", "RTT", "queue", "loss", "goodput there", "here", "difference", "accepted", "", "retransmitted",
        "fast recoveries", "timeouts", "mean cwnd"]  # fmt: skip


def _table(rows: Sequence[Row]) -> str:
    return markdown.table(HEAD, (_cells(row) for row in rows))


def _there(theirs: Theirs) -> str:
    spread = f" ({theirs.lowest:.3f}–{theirs.highest:.3f})" if theirs.lowest < theirs.highest else ""
    return f"{theirs.goodput:.3f}{spread}"


def _cells(row: Row) -> list[str]:
    theirs, ours = row.theirs, row.ours
    return [
        theirs.version,
        *_route(theirs.path),
        _there(theirs),
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
    """ns-3's two recoveries, for rows with both; with random loss over more seeds than the reference has."""
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
    """Return the additional runs of a row's flow, if there are any."""
    for other in more:
        if (other.version, other.cc, other.path, other.recovery) == (row.version, row.cc, row.path, recovery):
            return other
    return None


def mean_half_width(row: Theirs) -> float:
    """Half the 95 % interval of a row's mean over its seeds."""
    if row.sd is None:
        return 0.0
    return t_quantile(0.975, row.seeds - 1) * row.sd / math.sqrt(row.seeds)


def surprises(rows: Sequence[Row]) -> list[str]:
    """Return deviations from the page: rows outside without a reason, and reasons without a row."""
    lines = []
    for row in rows:
        if row.inside == (row.key in OUTLIERS):
            where = "inside, but listed as an outlier" if row.inside else f"outside {row.low:.3f}–{row.high:.3f}"
            lines.append(f"{row.key}: {row.ours.goodput:.3f} Mbit/s is {where}")
    return lines


def comparison() -> Comparison:
    """Compare everything."""
    rows = compare(read(f"{NAME}.csv"))
    westwood = compare(read(f"{NAME}.csv", WESTWOODS), WESTWOODS)
    judged = [*verdicts(rows), westwood_verdict(westwood)]
    parts = {**tables(rows, read(f"{NAME}-more.csv")), "Westwood": _table(westwood)}
    parts["verdict"] = verdict_table(judged)
    return Comparison(NAME, parts, judged, lambda: _drawn(rows), surprises(rows))


def westwood_verdict(rows: Sequence[Row]) -> Verdict:
    """Judge Westwood+."""
    return _verdict(f"Westwood+: rows within ± {WESTWOOD:.0%}", [row.inside for row in rows])


def _drawn(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    panels = []
    for version, cc in CONTROLS:
        points = [
            drawing.Point(
                {"NewReno": "reno", "Cubic": "cubic"}[cc],
                row.theirs.goodput,
                row.ours.goodput,
                hollow=row.theirs.path.loss_rate > 0,
                accepted=(row.low, row.high),
            )
            for row in rows
            if row.key[:2] == (version, cc)
        ]
        panels.append(drawing.Panel(f"{cc}, ns-3 {version}: goodput (Mbit/s)", points, "log", ratio=True))
    yield NAME, drawing.ours_over_theirs(panels, "ns-3", hollow="random loss")
