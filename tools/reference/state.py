"""The figures of the page "State of Anabranch", from the pages that measured them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from reference import markdown

HEAD = ["compared", "found", "how"]


@dataclass(frozen=True)
class Figure:
    """A figure of another page.

    Attributes:
        what: The comparison or measurement.
        page: The page, from ``docs`` on.
        pattern: A regular expression for the page; its groups fill ``text``.
        text: The figure, with ``{}`` for each group.
        command: The command that measures it.
        are_shares: The groups are shares of 1, printed in per cent.
    """

    what: str
    page: str
    pattern: str
    text: str
    command: str
    are_shares: bool = False

    def row(self, root: Path) -> list[str]:
        """The row of the table.

        Raises:
            SystemExit: The page has no such figure.
        """
        found = re.search(self.pattern, (root / "docs" / self.page).read_text("utf-8"), re.DOTALL)
        if found is None:
            raise SystemExit(f"docs/{self.page}: nothing matches {self.pattern!r}, for docs/state.md")
        groups = [f"{100 * float(group):.4g} %" for group in found.groups()] if self.are_shares else found.groups()
        return [f"[{self.what}]({self.page})", self.text.format(*groups), f"`{self.command}`"]


COMPARE = "python validation/compare.py --write {}"
PLANTED = r"begin {}.*?planted causes that are named \| ([\d.]+).*?was not there \| ([\d.]+)"
NAMED = "named in {} of the diagnoses; another cause named in {}"
BESIDE = r"goodput_mbit_s: median error ([\d.]+) %.*?all of these at once: in (\d+ of \d+).*?It (passes|fails)"
RIGHT = (
    Figure("60 random paths beside Linux 6.12: goodput alike (target: 90 %)", "validation/random-paths.md",
           r"in at least 90% of the paths \| (\d+ of \d+).*?with SACK.*?\| (\d+ of \d+).*?of goodput.*?\| ([\d.]+%)",
           "{} paths; with SACK {}; median error {}", "python validation/kernel/random_paths.py --kernel"),
    Figure("60 paths that fail or change beside Linux 6.12: goodput alike (target: 90 %)",
           "validation/changing-paths.md",
           r"in at least 90% of the paths \| (\d+ of \d+).*?the same, outages .*?\| (\d+ of \d+).*?"
           r"of goodput.*?\| ([\d.]+%)",
           "{} paths; outages {}; median error {}", "python validation/kernel/changing_paths.py --kernel"),
    Figure("Eight controls beside Linux: mean cwnd and mean RTT within 5 %", "validation/linux-controls.md",
           r"mean cwnd: within 5 % .*?\| (\d+ of \d+).*?mean RTT: within 5 %.*?\| (\d+ of \d+)",
           "{} and {} rows", COMPARE.format("linux-controls")),
    Figure("24 scenarios beside Linux in virtual time", "validation/kernel.md", BESIDE,
           "goodput: median error {} %; all figures alike in {} scenarios; as a whole it {}",
           "python validation/kernel/beside.py --write --seeds 3"),
    Figure("24 scenarios beside this machine's kernel", "validation/live.md", BESIDE,
           "goodput: median error {} %; all figures alike in {} scenarios; as a whole it {}",
           "make validate SEEDS=6"),
    Figure("24 outages beside Linux 6.12", "validation/outages.md",
           r"90% of the outages \| (\d+ of \d+).*?intervals alone.*?\| (\d+ of \d+)",
           "same segments and times in {}; times alone in {}", "python validation/kernel/outages.py --write"),
    Figure("Behaviour scripts of the profile `linux` on the kernel", "validation/scripts-kernel.md",
           r"\| `linux` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|",
           "of {} scripts {} agree, {} in some runs only, {} differ, {} do not apply",
           "python validation/kernel_scripts.py --write"),
    Figure("ns-2: one flow's share of the rate within 2 %", "validation/ns2-single-flow.md",
           r"in every row \| (\d+ of \d+)", "{} rows", COMPARE.format("ns2-single-flow")),
    Figure("ns-3: NewReno with random loss", "validation/ns3-single-flow.md",
           r"NewReno, with random loss.*?\| (\d+ of \d+)", "{} rows", COMPARE.format("ns3-single-flow")),
    Figure("Published claims of five studies", "studies/claims.md", r"(\d+ of \d+) published claims are settled",
           "{} settled: reproduced, or the paper shown to be inconsistent, or an artefact; fragile ones not counted",
           "make study"),
    Figure("Causes planted in simulated captures", "validation/diagnosis.md", PLANTED.format("simulated"), NAMED,
           "python validation/diagnose/planted.py --write", are_shares=True),
    Figure("Causes planted beside Linux 6.12", "validation/diagnosis.md", PLANTED.format("kernel"), NAMED,
           "python validation/diagnose/planted.py --engine kernel --write", are_shares=True),
    Figure("Advice of diagnoses beside what the remedy gives on Linux 6.12: goodput within 10 %",
           "validation/diagnosis.md", r"remedy gave: \*\*([\d.]+)%\*\* of (\d+) connections",
           "{} % of {} connections whose path shows its rate", "python validation/diagnose/advice.py --write"),
    Figure("The congestion control in captures of Linux, at the sender and at the receiver", "validation/diagnosis.md",
           r"captured at the sender \| ([\d.]+)%.*?wrongly, at the sender \| ([\d.]+)%.*?"
           r"captured at the receiver \| ([\d.]+)%.*?wrongly, at the receiver \| ([\d.]+)%",
           "{} % right and {} % wrong; {} % and {} %", "python validation/diagnose/controls.py --write"),
    Figure("Faults planted in congestion controls (target: 38 of 40)", "validation/stress.md",
           r"(\d+ of \d+) faults are found", "{} found", "python validation/stress/mutants.py --write"),
)  # fmt: skip
FAST = (
    Figure("Data packets per second of processor time with 10 flows, and instructions per packet", "bench.md",
           r"Anabranch, CUBIC \| [\d.]+ \| ([\d.]+) \| [\d.]+ \| [\d.]+ \| ([\d,]+).*?htsim.*?\| [\d.]+ \| ([\d.]+).*?"
           r"ns-2.*?\| [\d.]+ \| ([\d.]+)",
           "{} million, {} instructions; htsim {} million, ns-2 {} million, in one run", "make bench"),
    Figure("Longest gap of a download while a path of the gateway dies, in virtual time", "bench-gateway.md",
           r"black hole in both directions \| download \| download \| (\d+) \| (\d+) \|",
           "median {} ms, 95th percentile {} ms", "python bench/gateway/failures.py"),
    Figure("One TCP flow over two paths of 100 Mbit/s through the gateway", "bench-gateway.md",
           r"\| two_100 \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|[^\n]*?\n(?=.*## Pairs of paths, live)",
           "{} Mbit/s, {} over one bare path", "python bench/gateway/simulate.py --seeds 3"),
)  # fmt: skip


def fill(page: str, root: Path) -> str:
    """Return the page with both tables.

    Raises:
        SystemExit: The page has no marker, or another page has no such figure.
    """
    for part, figures in (("right", RIGHT), ("fast", FAST)):
        begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"docs/state.md: expected {begin.strip()} and {end}")
        table = markdown.table(HEAD, [figure.row(root) for figure in figures])
        page = f"{before}{begin}\n{table.rstrip()}\n\n{end}{after}"
    return page
