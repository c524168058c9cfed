"""Queues of a Linux kernel in virtual time compared with ours, packet by packet, over the same arrivals.

    python validation/kernel/queues.py            # prints the tables of docs/validation/kernel-queues.md
    python validation/kernel/queues.py --write    # brings the page and validation/data/kernel-queues.json up to date
    python validation/kernel/queues.py --check    # exit status 1 if one of them is not

Needs a kernel that ``anabranch kernel build`` has made, and cargo.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from anabranch.errors import RunFailedError, UserError  # noqa: E402
from anabranch.kernel.images import VARIABLE, chosen  # noqa: E402
from anabranch.kernel.machine import Job  # noqa: E402

from comparison.pages import fill  # noqa: E402
from kernel import netem_rows, share_rows  # noqa: E402
from kernel.arrivals import CE, Arrival, arrivals  # noqa: E402
from kernel.queue_rows import CHANCE, RATE, ROWS, Row  # noqa: E402

PAGE = ROOT / "docs/validation/kernel-queues.md"
DATA = ROOT / "validation/data/kernel-queues.json"
FEED = Path(__file__).with_name("feed.py")
# The profile and the features of `make test`, so that its results are used.
BUILD = ("cargo", "build", "--quiet", "--profile", "release", "--locked", "--workspace", "--example", "decisions")
KERNEL = "6.12"
"""The page's release, unless ``ANABRANCH_KERNEL`` names another one."""
DRAIN_NS = 3 * 10**9
NEAR_NS = 2_000
"""Times that differ by less are equal: an arrival in the guest is late by about 1.3 µs."""


@dataclass(frozen=True)
class Decisions:
    """Outcomes of packets.

    Attributes:
        left: The nanosecond of each departure, in order.
        marked: Packets that were marked.
        refused: Packets that were dropped on arrival, if known.
    """

    left: Mapping[int, float]
    marked: frozenset[int]
    refused: frozenset[int] = frozenset()

    def dropped(self, packets: int) -> set[int]:
        """Packets that did not leave."""
        return set(range(packets)) - set(self.left)


def there(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Run disciplines in a kernel in virtual time with ``feed.py``.

    Raises:
        UserError: There is no kernel.
        RunFailedError: The kernel or a command in it failed.
    """
    image = chosen(os.environ.get(VARIABLE) or KERNEL)
    with Job() as job:
        (job.folder / "cases.json").write_text(json.dumps(cases), "utf-8")
        ended = job.run(image, [sys.executable, str(FEED), str(Job.INSIDE)])
        if ended.status != 0:
            raise RunFailedError(f"the feeder ended with {ended.status}: {ended.err.strip()}")
        outcomes: list[dict[str, Any]] = json.loads((job.folder / "outcomes.json").read_text("utf-8"))
    for outcome in outcomes:
        if "error" in outcome:
            raise RunFailedError(outcome["error"])
    return outcomes


def case(tc: Sequence[str], packets: Sequence[Arrival], hosts: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """A case of the feeder; ``hosts`` are source and destination of each flow, separate for each flow by default."""
    return {"tc": list(tc), "arrivals": packets, "drain_ns": DRAIN_NS, "hosts": hosts}


def of_linux(rows: Sequence[Row]) -> list[Decisions]:
    """Decisions of the kernel's queues."""
    packets = [arrivals(row.shape) for row in rows]
    outcomes = there([case(row.tc, packet, row.hosts) for row, packet in zip(rows, packets, strict=True)])
    return [_linux(outcome, packet) for outcome, packet in zip(outcomes, packets, strict=True)]


def _linux(outcome: Mapping[str, Any], packets: Sequence[Arrival]) -> Decisions:
    left = {number: float(at) for number, at, _ in outcome["left"]}
    marked = (number for number, _, ecn in outcome["left"] if ecn == CE != packets[number].ecn)
    return Decisions(left, frozenset(marked), frozenset(outcome["refused"]))


def of_ours(rows: Sequence[Row], seeds: Iterable[int] = repeat(1)) -> list[Decisions]:
    """Decisions of our queues, each with its seed.

    Raises:
        RuntimeError: Cargo or the program failed.
    """
    packets = [arrivals(row.shape) for row in rows]
    cases = [
        {
            "queue": {row.queue["kind"]: {key: value for key, value in row.queue.items() if key != "kind"}},
            "rate": None if row.shapes else RATE,
            "seed": seed,
            "arrivals": packet,
            "hosts": row.hosts,
        }
        for row, packet, seed in zip(rows, packets, seeds, strict=False)
    ]
    decided = json.loads(_output([_program()], json.dumps(cases)))
    return [_ours(decisions, packet) for decisions, packet in zip(decided, packets, strict=True)]


@cache
def _program() -> str:
    """The compiled program that runs our queues."""
    target = json.loads(_output(["cargo", "metadata", "--no-deps", "--format-version", "1"]))["target_directory"]
    _output(BUILD)
    return f"{target}/release/examples/decisions"


def _ours(decisions: Sequence[Mapping[str, Any]], packets: Sequence[Arrival]) -> Decisions:
    order = sorted((d["left"], number) for number, d in enumerate(decisions) if d["left"] is not None)
    marked = (
        n for n, (d, packet) in enumerate(zip(decisions, packets, strict=True)) if d["marked"] and packet.ecn != CE
    )
    refused = (n for n, (d, packet) in enumerate(zip(decisions, packets, strict=True)) if d["dropped"] == packet.at_ns)
    return Decisions({number: float(at) for at, number in order}, frozenset(marked), frozenset(refused))


def _output(command: Sequence[str], text: str | None = None) -> str:
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in compact form: ``3-5 9``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def record(row: Row, decisions: Decisions) -> dict[str, str]:
    """Decisions in recorded form: dropped and marked packets, and a hash of the order of the departures."""
    order = ",".join(map(str, decisions.left))
    return {
        "dropped": ranges(decisions.dropped(len(arrivals(row.shape)))),
        "marked": ranges(decisions.marked),
        "order": sha256(order.encode()).hexdigest()[:12],
    }


def records(
    rows: Sequence[Row],
    linux: Sequence[Decisions],
    ours: Sequence[Decisions],
    netem: Sequence[Mapping[str, Any]],
    shared: Sequence[Decisions],
    drawn: Sequence[Decisions],
) -> str:
    """The file of recorded decisions: a line for each row and side, and for each line of netem without randomness."""
    lines = []
    for row, of_kernel, of_us in zip(rows, linux, ours, strict=True):
        for side, decisions in (("linux", of_kernel), ("anabranch", of_us)):
            lines.append(json.dumps({"row": row.name, "side": side, **record(row, decisions)}, ensure_ascii=False))
    for of, outcome in zip(netem_rows.LINES, netem, strict=True):
        if not of.draws:
            arrived = ranges({number for number, _, _ in outcome["left"]})
            lines.append(json.dumps({"row": of.name, "side": "linux", "arrived": arrived}))
    for row, decisions in zip(share_rows.ROWS, shared, strict=True):
        shares = " ".join(map(str, share_rows.shares(row, decisions)))
        lines.append(json.dumps({"row": row.name, "side": "linux", "shares": shares}))
    for row, decisions in zip(CHANCE, drawn, strict=True):
        seconds = " ".join(f"{share:.4f},{delay:.2f}" for share, delay in windows(row, decisions))
        lines.append(json.dumps({"row": row.name, "side": "linux", "seconds": seconds}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def recorded() -> dict[tuple[str, str], dict[str, str]]:
    """The recorded decisions, by row and side."""
    kept: list[dict[str, str]] = json.loads(DATA.read_text("utf-8"))
    return {(line.pop("row"), line.pop("side")): line for line in kept}


def differing(one: Decisions, other: Decisions) -> int:
    """Number of packets that only one side drops or only one side marks."""
    return len((one.left.keys() ^ other.left.keys()) | (one.marked ^ other.marked))


def early_late(linux: Decisions, ours: Decisions) -> tuple[float, float]:
    """Minimum and maximum delay of the kernel's departures after ours, in microseconds."""
    times = [linux.left[number] - ours.left[number] for number in linux.left.keys() & ours.left.keys()]
    return min(times) / 1000, max(times) / 1000


def line(row: Row, linux: Decisions, ours: Decisions) -> list[str]:
    """The cells of a row."""
    packets = arrivals(row.shape)
    low, high = early_late(linux, ours)
    near = max(-low, high) * 1000 <= NEAR_NS
    cells = [row.cell, row.shape, str(len(packets))]
    cells += [f"{len(linux.dropped(len(packets)))}, {len(ours.dropped(len(packets)))}"]
    cells += [f"{len(linux.marked)}, {len(ours.marked)}" if linux.marked or ours.marked else "–"]
    cells += [str(differing(linux, ours)), "less than 2 µs" if near else f"{low / 1000:+.1f} to {high / 1000:+.1f} ms"]
    for side, is_linux in ((linux, True), (ours, False)):
        model = row.modelled(packets, linux=is_linux)
        cells.append("–" if model is None else str(differing(side, Decisions(model[0], frozenset(model[1])))))
    return cells


HEAD = (
    "queue", "arrivals", "packets", "dropped: Linux, here", "marked: Linux, here", "packets that differ",
    "leaves later in Linux",    "Linux and the model of Linux differ", "here and the model of the RFC differ",
)  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


SEEDS = 20
"""Our runs for each run of Linux with a random discipline."""


Window = tuple[float, float]
"""The share dropped, and the mean queueing delay of the others in milliseconds."""


def windows(row: Row, decisions: Decisions) -> list[Window]:
    """A window for each second of arrivals."""
    packets = arrivals(row.shape)
    found = []
    for second in range(packets[-1].at_ns // 10**9 + 1):
        numbers = [number for number, packet in enumerate(packets) if packet.at_ns // 10**9 == second]
        delays = [
            (decisions.left[number] - packets[number].at_ns) / 1e6 for number in numbers if number in decisions.left
        ]
        found.append((1 - len(delays) / len(numbers), sum(delays) / max(len(delays), 1)))
    return found


def chance(row: Row, linux: Sequence[Window], ours: Sequence[Decisions]) -> Iterable[list[str]]:
    """The cells of a random discipline, a row for each second."""
    mine = [windows(row, decisions) for decisions in ours]
    for second, window in enumerate(linux):
        cells = [f"`{row.qdisc}`", f"{second} to {second + 1} s"]
        for value, shown in ((0, "{:.1%}"), (1, "{:.1f} ms")):
            of = sorted(run[second][value] for run in mine)
            cells += [shown.format(window[value]), f"{shown.format(of[0])} to {shown.format(of[-1])}"]
        yield cells


CHANCE_HEAD = ("queue", "arrivals", "dropped: Linux", "here", "queueing delay: Linux", "here")


def parts(
    linux: Sequence[Decisions],
    ours: Sequence[Decisions],
    netem: Sequence[Mapping[str, Any]],
    shared: Sequence[Decisions],
    drawn: Sequence[Decisions],
) -> dict[str, str]:
    """The generated parts of the page.

    Args:
        linux: Decisions of the kernel in the rows.
        ours: Decisions of the simulator in the rows.
        netem: Outcomes of the lines of netem in the kernel.
        shared: Decisions of the kernel in the rows of shares.
        drawn: Decisions of the kernel in the rows of chance.
    """
    lines = netem_rows.LINES
    cells: list[list[str]] = []
    for number, row in enumerate(CHANCE):
        mine = of_ours([row] * SEEDS, range(1, SEEDS + 1))
        cells += chance(row, windows(row, drawn[number]), mine)
    converted = (
        netem_rows.cells(row, outcome, netem_rows.ours(row)) for row, outcome in zip(lines, netem, strict=True)
    )
    return {
        "rows": table(HEAD, (line(*of) for of in zip(ROWS, linux, ours, strict=True))),
        "shares": table(
            share_rows.HEAD,
            (
                share_rows.cells(row, *(share_rows.shares(row, side) for side in sides))
                for row, *sides in zip(share_rows.ROWS, shared, of_ours(share_rows.ROWS), strict=True)
            ),
        ),
        "chance": table(CHANCE_HEAD, cells),
        "netem": table(netem_rows.HEAD, converted),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    todo = parser.add_mutually_exclusive_group()
    todo.add_argument("--write", action="store_true", help="bring page and recorded decisions up to date")
    todo.add_argument(
        "--check", action="store_true", help="exit status 1 if page or recorded decisions are out of date"
    )
    options = parser.parse_args(arguments)
    try:
        linux, ours = of_linux(ROWS), of_ours(ROWS)
        netem = there([case(of.tc, arrivals(of.shape)) for of in netem_rows.LINES])
        shared, drawn = of_linux(share_rows.ROWS), of_linux(CHANCE)
        made = parts(linux, ours, netem, shared, drawn)
    except (UserError, RunFailedError, RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not (options.write or options.check):
        print("\n\n".join(made.values()))
        return 0
    new = {PAGE: fill(PAGE.read_text("utf-8"), made, str(PAGE)), DATA: records(ROWS, linux, ours, netem, shared, drawn)}
    stale = [path for path, text in new.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if options.write:
            path.write_text(new[path], "utf-8")
        else:
            print(f"{path.relative_to(ROOT)} is out of date", file=sys.stderr)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
