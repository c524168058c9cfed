"""The queue of ``anabranch aqm`` on a router of a kernel in virtual time, beside the simulator's queue.

    python validation/kernel/aqm.py             # prints the table of docs/guides/aqm.md
    python validation/kernel/aqm.py --write     # the same, and writes it into the page
    python validation/kernel/aqm.py --stored    # the table of the stored runs, without a run of the kernel

A CUBIC and a NewReno connection (Compound TCP is an eBPF program, which this kernel does not take). No run is late: the
guest's time does not depend on the load of the machine. Needs a kernel that ``anabranch kernel build`` has made, and
clang.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "validation"), str(ROOT / "tools")]

from anabranch import Scenario  # noqa: E402
from anabranch.errors import RunFailedError  # noqa: E402
from anabranch.kernel.images import VARIABLE, chosen  # noqa: E402
from anabranch.kernel.machine import Job  # noqa: E402
from reference import markdown  # noqa: E402

from comparison import pages  # noqa: E402

PAGE = ROOT / "docs/guides/aqm.md"
HOSTS = Path(__file__).with_name("aqm_hosts.py")
DATA = ROOT / "validation/data/kernel-aqm.json"
KERNEL = "6.12"
RATE_MBIT = 40
LIMIT = 300
RTTS_MS = (20, 60)
SECONDS = 30
SEEDS = (1, 2, 3)
"""Seeds of the kernel's random numbers; those of the simulator are more, because its runs are short."""
SIMULATED = range(1, 11)
QUEUES = {"without": None, "`share-red`": "", "`share-red`, ECN": "ecn=true"}
FLOWS = ("cubic", "reno")
SIMULATED_NAMES = {"cubic": "cubic", "reno": "new-reno"}
FILE = """
title = "CUBIC beside NewReno"
duration = "{seconds} s"
[link.path]
between = ["A", "B"]
rate = "{rate} Mbit/s"
delay = "{delay} ms"
forward.queue = {{ kind = "{kind}", limit = "{limit} packets"{more} }}
"""
FLOW = '[flow.{name}]\nfrom = "A"\nto = "B"\ncc = "{cc}"\n{more}'
SILENCE_S = 1800.0
"""Longest real time without progress of the guest: the compiler runs in it, on a machine that may be busy."""


def simulated(queue: str, rtt_ms: int) -> list[dict[str, float]]:
    """The figures of the simulator's runs."""
    option = QUEUES[queue]
    text = FILE.format(
        seconds=SECONDS, rate=RATE_MBIT, delay=rtt_ms / 2, limit=LIMIT,
        kind="drop-tail" if option is None else "share-red", more=", ecn = true" if option else "",
    )  # fmt: skip
    for name in FLOWS:
        text += FLOW.format(
            name=name, cc=SIMULATED_NAMES[name], more='transport = { ecn = "rfc3168" }\n' if option else ""
        )
    found = []
    for seed in SIMULATED:
        summary = Scenario.from_text(text).run(seed=seed).summary
        goodputs = [summary["flows"][name]["goodput_mbit_s"] for name in FLOWS]
        link = summary["links"]["path"]["forward"]
        found.append(figures(goodputs, link["dropped_packets"], link["marked_packets"]))
    return found


def figures(goodputs: Sequence[float], dropped: int, marked: int) -> dict[str, float]:
    """The figures of a run."""
    return {
        "ratio": goodputs[0] / goodputs[1],
        "total": sum(goodputs),
        "dropped": dropped / SECONDS,
        "marked": marked / SECONDS,
    }


def of_kernel(run: dict[str, Any]) -> dict[str, float]:
    """The same of a run of the kernel."""
    goodputs = [run["flows"][name]["bytes"] * 8 / 1e6 / SECONDS for name in FLOWS]
    queue = run.get("queue", {})
    return figures(goodputs, queue.get("dropped_packets", 0), queue.get("marked_packets", 0))


def measured() -> dict[str, Any]:
    """Run the cases in a kernel in virtual time. An interrupted measurement continues with those that are missing.

    Raises:
        RunFailedError: The kernel or a command in it failed.
    """
    image = chosen(os.environ.get(VARIABLE) or KERNEL)
    part = DATA.with_suffix(".part")
    begun = json.loads(part.read_text("utf-8")) if part.exists() else {}
    found = begun["runs"] if begun.get("kernel") == image.release else []
    done = [(run["queue_name"], run["rtt_ms"], run["seed"]) for run in found]
    for seed, rtt_ms, queue in itertools.product(SEEDS, RTTS_MS, QUEUES):
        if (queue, rtt_ms, seed) in done:
            continue
        option = QUEUES[queue]
        sets = ["--rate", f"{RATE_MBIT} Mbit/s", "--set", f"limit={LIMIT} packets"]
        case = {
            "network": {"rate_mbit": RATE_MBIT, "rtt_ms": rtt_ms, "limit": LIMIT, "ecn": bool(option)},
            "flows": FLOWS, "seconds": SECONDS,
            "queue": None if option is None else [*sets, *(["--set", option] if option else [])],
        }  # fmt: skip
        with Job() as job:
            (job.folder / "case.json").write_text(json.dumps(case), "utf-8")
            command = [sys.executable, str(HOSTS), str(Job.INSIDE)]
            ended = job.run(image, command, seed=seed, silence_s=SILENCE_S)
            if ended.status != 0:
                raise RunFailedError(f"the hosts ended with {ended.status}: {ended.err.strip()}")
            outcome = json.loads((job.folder / "outcome.json").read_text("utf-8"))
        found.append({"queue_name": queue, "rtt_ms": rtt_ms, "seed": seed} | outcome)
        print(queue, rtt_ms, seed, of_kernel(found[-1]), file=sys.stderr, flush=True)
        part.write_text(json.dumps({"kernel": image.release, "runs": found}), "utf-8")
    part.unlink(missing_ok=True)
    return {"kernel": image.release, "runs": found}


def spread(found: Sequence[dict[str, float]], what: str, digits: int) -> str:
    """The mean, with the smallest and the largest run."""
    values = [one[what] for one in found]
    mean, least, most = (f"{value:.{digits}f}" for value in (statistics.fmean(values), min(values), max(values)))
    return mean if least == most == mean else f"{mean} ({least}–{most})"


def table(data: dict[str, Any]) -> str:
    """The page's table."""
    rows = []
    for rtt_ms, queue in itertools.product(RTTS_MS, QUEUES):
        theirs = [of_kernel(run) for run in data["runs"] if (run["queue_name"], run["rtt_ms"]) == (queue, rtt_ms)]
        if not theirs:
            continue
        ours = simulated(queue, rtt_ms)
        row = [f"{rtt_ms} ms", queue]
        for what, digits in (("ratio", 2), ("total", 2), ("dropped", 2), ("marked", 2)):
            shown = what in ("ratio", "total") or QUEUES[queue] is not None
            row += [spread(found, what, digits) if shown else "–" for found in (ours, theirs)]
        rows.append([*row, str(len(theirs))])
    head = ["round trip", "queue", "CUBIC ÷ NewReno, simulator", "kernel", "total, Mbit/s, simulator", "kernel",
            "drops/s, simulator", "kernel", "marks/s, simulator", "kernel", "runs"]  # fmt: skip
    return markdown.table(head, rows) + f"\n\nLinux {data['kernel']}, in virtual time."


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into the page, and keep the runs")
    parser.add_argument("--stored", action="store_true", help="do not run the kernel")
    given = parser.parse_args()
    data = json.loads(DATA.read_text("utf-8")) if given.stored else measured()
    made = table(data)
    print(made)
    if given.write:
        DATA.write_text(json.dumps(data) + "\n", "utf-8")
        PAGE.write_text(pages.fill(PAGE.read_text("utf-8"), {"kernel": made}, PAGE.name), "utf-8")


if __name__ == "__main__":
    main()
