"""Every two congestion controls at one bottleneck: ``docs/validation/mixes.md``."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch import _engine as engine
from matplotlib.figure import Figure
from reference import markdown

from comparison import matrices, pages
from comparison.expectations import EXPECTATIONS, SETTINGS, Check, Setting, Shares
from comparison.judging import Verdict
from comparison.oracle import ROOT, spec
from comparison.pages import Comparison
from comparison.runs import Case, simulate

NAME = "mixes"
SPEC = spec(NAME)
SEEDS: int = SPEC["seeds"]
LONGER: list[str] = SPEC["longer"]["set"]
LONGER_MIXES = [(first, second, Setting(queue, flows)) for first, second, queue, flows in SPEC["longer"]["mixes"]]
ORDER: list[str] = SPEC["order"]
WITHOUT: Mapping[str, str] = SPEC["without"]


@dataclass(frozen=True)
class Mix:
    """Two groups of flows at one bottleneck, over the seeds: the first group's shares, and Jain's indices."""

    first: str
    second: str
    setting: Setting
    shares: tuple[float, ...]
    jains: tuple[float, ...]

    @property
    def share(self) -> float:
        """The first group's mean share of all goodput, 0 to 1."""
        return math.fsum(self.shares) / len(self.shares)

    @property
    def jain(self) -> float:
        """The mean of Jain's index over all flows, 1/n to 1."""
        return math.fsum(self.jains) / len(self.jains)

    @property
    def text(self) -> str:
        """The mean share, with the range over the seeds."""
        return f"{self.share:.2f} ({min(self.shares):.2f}–{max(self.shares):.2f})"

    def turned(self) -> Mix:
        """Return the mix with the groups exchanged."""
        return replace(self, first=self.second, second=self.first, shares=tuple(1 - share for share in self.shares))


def controls() -> list[str]:
    """Return the rows of the matrix: the engine's controls without the excluded ones."""
    items: list[dict[str, Any]] = json.loads(engine.registry())
    there = {item["name"] for item in items if item["kind"] == "cc"}
    return sorted(there - set(WITHOUT), key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def case(first: str, second: str, setting: Setting, more: Sequence[str] = ()) -> Case:
    """Return the run for a mix, with the settings ``more`` in addition."""
    sets = (
        f'flow.a.cc="{first}"',
        f'flow.b.cc="{second}"',
        f"flow.a.count={setting.flows}",
        f"flow.b.count={setting.flows}",
        f'link.bottleneck.queue.limit="{setting.queue} bdp"',
        *more,
    )
    return Case(f"{NAME}.toml", sets, SEEDS)


def run(asked: Sequence[tuple[str, str, Setting]], more: Sequence[str] = ()) -> list[Mix]:
    """Run mixes."""
    cases = [case(*mix, more) for mix in asked]
    made = simulate(cases, NAME)
    return [of_runs(*mix, made[one]) for mix, one in zip(asked, cases, strict=True)]


def of_runs(first: str, second: str, setting: Setting, runs: Sequence[Mapping[str, Any]]) -> Mix:
    """Return the mix of some runs."""
    return Mix(first, second, setting, tuple(map(_share, runs)), tuple(run["fairness"]["jain_index"] for run in runs))


def goodputs(run: Mapping[str, Any], group: str) -> list[float]:
    """Return the goodput of each flow of a group, in Mbit/s."""
    copies = {name: flow for name, flow in run["flows"].items() if name.partition("/")[0] == group}
    return [float(flow["goodput_mbit_s"] or 0) for flow in copies.values()]


def _share(run: Mapping[str, Any]) -> float:
    first, second = (math.fsum(goodputs(run, group)) for group in "ab")
    return first / (first + second)


def every_mix() -> list[Mix]:
    """Run every pair once in each setting, and every control against itself."""
    pairs = itertools.combinations_with_replacement(controls(), 2)
    return run([(*pair, setting) for pair in pairs for setting in SETTINGS])


def shares(mixes: Sequence[Mix]) -> Shares:
    """Return the share of each control against each; the second group's share is the remainder."""
    both = [side for mix in mixes for side in (mix.turned(), mix)]
    return {(mix.first, mix.second, mix.setting): mix.share for mix in both}


def jains(mixes: Sequence[Mix]) -> Shares:
    """Return Jain's index of each control against each."""
    found = {(mix.first, mix.second, mix.setting): mix.jain for mix in mixes}
    return found | {(second, first, setting): jain for (first, second, setting), jain in found.items()}


OUTSIDE: Mapping[str, frozenset[str]] = {name: frozenset(cells) for name, cells in SPEC["outside"].items()}


def outside(found: Shares) -> Iterator[tuple[str, Check]]:
    """Yield the checks that are outside of their range, with the expectation's name."""
    for expectation in EXPECTATIONS:
        yield from ((expectation.name, check) for check in expectation.checks(found) if not check.held)


def verdicts(found: Shares) -> list[Verdict]:
    """Judge the expectations."""
    judged = []
    for expectation in EXPECTATIONS:
        held = [check.held for check in expectation.checks(found)]
        judged.append(Verdict(expectation.condition, f"{sum(held)} of {len(held)} mixes", all(held)))
    return judged


def of_seed(mixes: Sequence[Mix], seed: int) -> Shares:
    """Return the shares of one seed alone."""
    return shares([replace(mix, shares=(mix.shares[seed],), jains=(mix.jains[seed],)) for mix in mixes])


def _verdict_table(mixes: Sequence[Mix]) -> str:
    """The verdicts, and their dependence on the seeds."""
    seeds = [of_seed(mixes, seed) for seed in range(SEEDS)]
    rows = []
    for expectation, verdict in zip(EXPECTATIONS, verdicts(shares(mixes)), strict=True):
        each = list(zip(*(expectation.checks(found) for found in seeds), strict=True))
        held = sum(all(check.held for check in checks) for checks in each)
        widest = max(each, key=lambda checks: _range([check.share for check in checks]))
        low, high = min(check.share for check in widest), max(check.share for check in widest)
        spread = f"{low:.2f}–{high:.2f}, {widest[0].cell}"
        rows.append([verdict.condition, verdict.found, verdict.word, f"{held} of {len(each)}", spread])
    return markdown.table(["expected", "found", "verdict", "in every seed by itself", "widest range over seeds"], rows)


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def surprises(found: Shares) -> list[str]:
    """Return deviations from the page: mixes outside without a reason, and reasons without a mix."""
    missed = {(name, check.cell): check for name, check in outside(found)}
    known = {(name, cell) for name, cells in OUTSIDE.items() for cell in cells}
    return [
        *(f"{NAME} {name}: {missed[name, cell].cell}: {missed[name, cell].share:.3f} is outside"
          for name, cell in sorted(missed.keys() - known)),
        *(f"{NAME} {name}: {cell}: is inside" for name, cell in sorted(known - missed.keys())),
    ]  # fmt: skip


def _outside_table(found: Shares) -> str:
    rows = [[check.cell, f"{check.share:.2f}", f"{check.low:.2f} to {check.high:.2f}"] for _, check in outside(found)]
    return markdown.table(["mix", "share", "expected"], rows) if rows else "None."


def _longer(found: Sequence[Mix]) -> str:
    short = {(mix.first, mix.second, mix.setting): mix for mix in found}
    rows = []
    for mix in run(LONGER_MIXES, LONGER):
        before = short.get((mix.first, mix.second, mix.setting)) or short[mix.second, mix.first, mix.setting].turned()
        rows.append([f"{mix.first} beside {mix.second}, {mix.setting}", before.text, mix.text])
    return markdown.table(["mix", "10 s to 60 s", "100 s to 300 s"], rows)


def _sources() -> str:
    rows = ([expectation.condition, expectation.source] for expectation in EXPECTATIONS)
    return markdown.table(["expected", "because"], rows)


def said() -> dict[tuple[str, str, Setting], tuple[str, str]]:
    """Return the page's cells for each mix: its share with the range, and Jain's index."""
    part = (ROOT / pages.FOLDER / f"{NAME}.md").read_text("utf-8").partition("<!-- begin rows -->")[2]
    found = {}
    for line in part.partition("<!-- end rows -->")[0].strip().splitlines()[2:]:
        pair, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        first, second = pair.split(" / ")
        for setting, share, jain in zip(SETTINGS, cells[::2], cells[1::2], strict=True):
            found[first, second, setting] = (share, jain)
    return found


def kept() -> list[Mix]:
    """Return the mixes of the page, rounded to its two digits, with means only."""
    return [
        Mix(*mix, shares=(float(share.partition(" ")[0]),), jains=(float(jain),))
        for mix, (share, jain) in said().items()
    ]


def cell(mix: Mix) -> tuple[str, str]:
    """Return the page's cells for a mix: its share and Jain's index."""
    return mix.text, f"{mix.jain:.2f}"


def _rows(mixes: Sequence[Mix]) -> str:
    head = ["first / second"]
    for setting in SETTINGS:
        head += [f"{setting.queue} BDP, {setting.flows} + {setting.flows}", "Jain"]
    by_pair: dict[tuple[str, str], list[Mix]] = {}
    for mix in mixes:
        by_pair.setdefault((mix.first, mix.second), []).append(mix)
    rows = []
    for pair, four in by_pair.items():
        row = [" / ".join(pair)]
        for mix in four:
            row += cell(mix)
        rows.append(row)
    return markdown.table(head, rows)


def comparison() -> Comparison:
    """Run and judge everything."""
    mixes = every_mix()
    found = shares(mixes)
    judged = verdicts(found)
    parts = {
        "verdict": _verdict_table(mixes),
        "outside": _outside_table(found),
        "longer": _longer(mixes),
        "sources": _sources(),
        "rows": _rows(mixes),
    }
    return Comparison(NAME, parts, judged, lambda: _figures(mixes), surprises(found))


def _figures(mixes: Sequence[Mix]) -> Iterator[tuple[str, Figure]]:
    names = controls()
    yield f"{NAME}-share", matrices.draw(_panels(names, shares(mixes)), names, matrices.SHARE)
    yield f"{NAME}-jain", matrices.draw(_panels(names, jains(mixes)), names, matrices.JAIN)


def _panels(names: Sequence[str], found: Shares) -> list[matrices.Panel]:
    return [
        matrices.Panel(str(setting), [[found[row, column, setting] for column in names] for row in names])
        for setting in SETTINGS
    ]
