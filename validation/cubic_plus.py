"""Measure CUBIC and Cubic+ over a queue that reorders, on this machine's kernel and in the simulator.

    python validation/cubic_plus.py            runs both; seven minutes, root, a machine that is not busy
    python validation/cubic_plus.py --pages    runs nothing: writes page and figure from the kept result
    python validation/cubic_plus.py --check    compares those instead; exit status 1 when one is out of date

Cubic+ is the same file in both: `bpf/cc/cubic-plus.bpf.c`, which `anabranch cc install cubic-plus` loads. The scenario
is `scenarios/live/cubic-plus.toml`, the result `validation/data/cubic-plus.json`, the page `docs/guides/cubic-plus.md`.

A row is alike if the simulator's share of retransmissions is at most one percentage point outside the range of the
kernel's runs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from anabranch import Scenario
from anabranch.errors import RunFailedError
from anabranch.plot.style import house_style, new_figure

from comparison.pages import fill

# The package adds tools/ to the path.
from reference import markdown  # isort: skip

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios/live/cubic-plus.toml"
CONTROL = ROOT / "bpf/cc/cubic-plus.bpf.c"
RESULT = ROOT / "validation/data/cubic-plus.json"
PAGE = ROOT / "docs/guides/cubic-plus.md"
FIGURE = ROOT / "docs/guides/cubic-plus.svg"
PART = "measured"

INTERVALS = (10, 30, 60)
"""Values of the reorder interval, in packets."""
CONTROLS = {"CUBIC": '"cubic"', "Cubic+": '{ kind = "bpf", name = "cubic-plus" }'}
REPEATS = 3
ATTEMPTS = 4
"""Attempts for a live run that is not tainted."""
TOLERANCE = 0.01


def cases() -> Iterator[tuple[bool, int, str]]:
    """Each case: whether the flow has SACK, the reorder interval, and the control."""
    for sack in (True, False):
        for interval in INTERVALS:
            for control in CONTROLS:
                yield sack, interval, control


def scenario(sack: bool, interval: int, control: str) -> Scenario:
    """The scenario of a case."""
    return Scenario.from_file(SCENARIO).with_sets(
        f"link.bottleneck.forward.queue.reorder.interval={interval}",
        f"flow.main.cc={CONTROLS[control]}",
        f"flow.main.transport.sack={str(sack).lower()}",
    )


def figures(flow: Any) -> dict[str, float]:
    """The figures of a run."""
    return {
        "retransmitted_share": flow["retransmitted_packets"] / flow["sent_packets"],
        "goodput_mbit_s": flow["goodput_mbit_s"],
    }


def live(one: Scenario) -> dict[str, float]:
    """The figures of a live run that is not tainted.

    Raises:
        RunFailedError: The machine is too busy.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return figures(one.run_live(trace="off").flows["main"])
        except RunFailedError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def digest() -> str:
    """A hash of the scenario, of the control, and of the cases."""
    content = SCENARIO.read_bytes() + CONTROL.read_bytes() + repr((list(cases()), REPEATS)).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def measured() -> dict[str, Any]:
    """All runs."""
    rows = []
    for sack, interval, control in cases():
        one = scenario(sack, interval, control)
        simulated = figures(one.run(digest=False).flows["main"])
        runs = [live(one) for _ in range(REPEATS)]
        rows.append({"sack": sack, "interval": interval, "control": control, "simulator": simulated, "kernel": runs})
        print(json.dumps(rows[-1]), flush=True)
    # Without the name that a distribution adds.
    release = platform.release().partition("-")[0]
    return {"digest": digest(), "kernel": release, "rows": rows}


def is_alike(row: dict[str, Any]) -> bool:
    """Whether the simulator's retransmissions are those of the kernel."""
    shares = [run["retransmitted_share"] for run in row["kernel"]]
    simulated = row["simulator"]["retransmitted_share"]
    return bool(min(shares) - TOLERANCE <= simulated <= max(shares) + TOLERANCE)


def table(result: dict[str, Any]) -> str:
    """The table of the page."""
    heads = [
        "SACK",
        "interval",
        "control",
        "retransmitted, kernel",
        "simulator",
        "alike",
        "Mbit/s, kernel",
        "simulator",
    ]
    rows = [
        [
            "on" if row["sack"] else "off",
            str(row["interval"]),
            row["control"],
            _range([run["retransmitted_share"] for run in row["kernel"]], 100, "%"),
            f"{100 * row['simulator']['retransmitted_share']:.2f} %",
            "yes" if is_alike(row) else "**no**",
            _range([run["goodput_mbit_s"] for run in row["kernel"]], 1, ""),
            f"{row['simulator']['goodput_mbit_s']:.2f}",
        ]
        for row in result["rows"]
    ]
    alike = sum(map(is_alike, result["rows"]))
    told = f"`python validation/cubic_plus.py`, Linux {result['kernel']}, {REPEATS} runs of each row on the kernel: "
    told += f"mean (least to most). {alike} of {len(rows)} rows are alike."
    return f"{markdown.table(heads, rows)}\n\n{told}"


def _range(values: Sequence[float], scale: float, unit: str) -> str:
    low, high, mean = (scale * one for one in (min(values), max(values), sum(values) / len(values)))
    return f"{mean:.2f}{f' {unit}' if unit else ''} ({low:.2f} to {high:.2f})"


def drawn(result: dict[str, Any]) -> bytes:
    """The figure: retransmissions in the simulator beside those in the kernel."""
    with house_style():
        figure, axes = new_figure(6.6, 3.2)
        rows = result["rows"]
        for at, row in enumerate(rows):
            shares = [100 * run["retransmitted_share"] for run in row["kernel"]]
            axes.plot([at] * len(shares), shares, "o", color="C0", markersize=4, label="kernel" if not at else None)
            simulated = 100 * row["simulator"]["retransmitted_share"]
            axes.plot([at + 0.25], [simulated], "x", color="C1", markersize=5, label="simulator" if not at else None)
        names = [f"{row['control']}\n{row['interval']}\n{'SACK' if row['sack'] else 'no SACK'}" for row in rows]
        axes.set_xticks(range(len(rows)), names, fontsize=6)
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylim(0, 100)
        axes.set_ylabel("retransmitted, % of packets sent")
        axes.legend(fontsize=8, loc=(0.6, 0.75))
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": "anabranch"})
    return content.getvalue()


def main() -> int:
    """Run, write, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", action="store_true", help="write page and figure from the kept result")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    if not (arguments.pages or arguments.check):
        RESULT.write_text(json.dumps(measured(), indent=1) + "\n", "utf-8")
    result = json.loads(RESULT.read_text("utf-8"))
    old = PAGE.read_text("utf-8")
    new = fill(old, {PART: table(result)}, PAGE.name)
    if arguments.check:
        outdated = [PAGE.name] * (new != old) + [RESULT.name] * (result["digest"] != digest())
        for name in outdated:
            print(f"{name} is out of date: python validation/cubic_plus.py", file=sys.stderr)
        return 1 if outdated else 0
    PAGE.write_text(new, "utf-8")
    FIGURE.write_bytes(drawn(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
