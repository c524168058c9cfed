"""The table of the page "Beyond the papers", with figures from the pages that measured them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reference import markdown

BEGIN, END = "<!-- begin beyond -->\n", "<!-- end beyond -->"
HEAD = ["left for later", "ours", "what is compared", "ours gives", "the paper's method gives", "ours is"]


@dataclass(frozen=True)
class Compared:
    """A figure of ours and of the paper's method: cells of tables on one page.

    Attributes:
        what: The quantity, and the setting in which it was measured.
        part: The generated part of the page that has the table.
        ours: Row and column of our figure.
        theirs: Row and column of their figure.
        more: Whether a higher figure is better.
    """

    what: str
    part: str
    ours: tuple[str, str]
    theirs: tuple[str, str]
    more: bool = True


@dataclass(frozen=True)
class Answer:
    """A question that the authors left open, and our answer."""

    question: str
    ours: str
    page: str
    compared: tuple[Compared, ...]


def _column(ours: str, theirs: str, part: str, *rows: tuple[str, str], more: bool = True) -> tuple[Compared, ...]:
    """Comparisons in a table with a column for each method: pairs of row and quantity."""
    return tuple(Compared(what, part, (row, ours), (row, theirs), more) for row, what in rows)


def _row(ours: str, theirs: str, part: str, *columns: tuple[str, str, bool]) -> tuple[Compared, ...]:
    """Comparisons in a table with a row for each method: column, quantity, and whether a higher figure is better."""
    return tuple(Compared(what, part, (ours, column), (theirs, column), more) for column, what, more in columns)


FORECAST, STUDY = "Forecast of peaks", "Percentile of peaks, as in the study"
PAIR = "earliest-arrival, adaptive"
ADAPTIVE, LIMIT = "loss-adaptive", "XOR, fmax 40"

ANSWERS = (
    Answer(
        "A method that stays fair where the round-trip time is long (fairness)",
        "`share-red`",
        "fairness-mixes",
        _row(
            "Share-weighted RED",
            "Dynamic",
            "queues",
            ("worst share of max-min", "least share of max-min in twelve mixes", True),
            ("p95 delay (ms), mean", "queue delay, 95th percentile (ms)", False),
            ("total (Mbit/s), mean", "total (Mbit/s)", True),
            ("least ratio", "Compound TCP over CUBIC, at the length where it is least", True),
        ),
    ),
    Answer(
        "A control that keeps both the power saving and the throughput (link aggregation)",
        "`peak-forecast`",
        "link-aggregation-frontier",
        (
            *_column(FORECAST, STUDY, "goodput", ("CUBIC", "CUBIC, Mbit/s"), ("BBR", "BBR, Mbit/s")),
            *_column(
                FORECAST, STUDY, "links", ("CUBIC", "CUBIC, links on"), ("Recorded", "recorded traffic, links on"),
                more=False,
            ),
        ),
    ),
    Answer(
        "Other rates and numbers of routes; gateways that choose by what they measure (multipath)",
        "`earliest-arrival` with `adaptive`",
        "multipath-frontier",
        _column(
            PAIR,
            "Method A",
            "situations",
            ("eight routes", "eight routes, Mbit/s"),
            ("one loses 1 %", "one route loses 1 %, Mbit/s"),
            ("route 1 fails at 10 s", "route 1 fails, Mbit/s"),
            ("BBR", "BBR, Mbit/s"),
            ("four flows", "four flows, Mbit/s"),
        ),
    ),
    Answer(
        "Losses in bursts; redundancy that follows the network's state (error correction)",
        "`loss-adaptive` with `sliding-rlc`",
        "fec-frontier",
        (
            *_column(ADAPTIVE, LIMIT, "reno", ("2", "Reno, bursts of 2, Mbit/s"), ("16", "Reno, bursts of 16, Mbit/s")),
            *_column(ADAPTIVE, LIMIT, "rack", ("4", "CUBIC with RACK-TLP, bursts of 4, Mbit/s")),
            *_column(ADAPTIVE, LIMIT, "bbr", ("4", "BBR, bursts of 4, Mbit/s")),
        ),
    ),
)  # fmt: skip


def fill(page: str, root: Path) -> str:
    """Return the page with the table inserted.

    Raises:
        SystemExit: The page has no markers for the table, or a figure is missing.
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"docs/studies/beyond.md: expected {BEGIN.strip()} and {END}")
    rows = []
    for answer in ANSWERS:
        text = (root / "docs" / "studies" / f"{answer.page}.md").read_text("utf-8")
        for i, one in enumerate(answer.compared):
            ours, theirs = (_cell(text, one.part, place) for place in (one.ours, one.theirs))
            first = [answer.question, f"[{answer.ours}]({answer.page}.md)"] if i == 0 else ["", ""]
            rows.append([*first, one.what, ours, theirs, _word(ours, theirs, more=one.more)])
    return f"{before}{BEGIN}\n{markdown.table(HEAD, rows)}\n\n{END}{after}"


def _word(ours: str, theirs: str, *, more: bool) -> str:
    a, b = (float(cell.split()[0]) for cell in (ours, theirs))
    if a == b:
        return "equal"
    return "better" if (a > b) == more else "worse"


def _cell(page: str, part: str, place: tuple[str, str]) -> str:
    """A cell of a generated table, by the label of its row and the title of its column."""
    row, column = place
    lines = page.partition(f"<!-- begin {part} -->")[2].partition(f"<!-- end {part} -->")[0].splitlines()
    table = [[cell.strip() for cell in line[1:].removesuffix("|").split("|")] for line in lines if line.startswith("|")]
    if table and column in table[0]:
        for cells in table[2:]:
            if cells[0] == row:
                return cells[table[0].index(column)]
    raise SystemExit(f'{part}: no row "{row}" with a column "{column}"')
