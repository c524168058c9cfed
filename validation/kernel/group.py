"""Two Linux bonds whose members sleep, in a kernel in virtual time, beside the simulator's group of the same file.

    python validation/kernel/group.py            # prints the tables of docs/guides/link-group.md
    python validation/kernel/group.py --write    # brings the page, its figure and its data up to date
    python validation/kernel/group.py --part transfers --write    # runs these cases again, and keeps the others
    python validation/kernel/group.py --check    # exit status 1 if one of them is not, without a run of the kernel

Needs a kernel that ``anabranch kernel build`` has made, and ``anabranch-group``
(``cargo build --release -p anabranch-groupd``).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "validation"), str(ROOT / "tools")]

from anabranch.errors import RunFailedError  # noqa: E402
from anabranch.gateway.daemon import GROUP, find  # noqa: E402
from anabranch.kernel.images import VARIABLE, chosen  # noqa: E402
from anabranch.kernel.machine import Job  # noqa: E402
from anabranch.plot.style import COLOURS, house_style  # noqa: E402
from anabranch.scenario import Scenario  # noqa: E402
from reference import markdown  # noqa: E402

from comparison.pages import Comparison, stale, write  # noqa: E402

FILE = Path(__file__).with_name("group.toml")
HOSTS = Path(__file__).with_name("group_hosts.py")
DATA = ROOT / "validation/data/kernel-group.json"
KERNEL = "6.12"
CONTROLS = ("cubic", "bbr", "reno")
METHODS = {
    "off": "always-on",
    "dynamic-lacp": "peak-percentile",
    "peak-forecast": "peak-forecast",
}
"""Methods of the daemon and the simulator's names; ``off`` is a bond without a daemon."""
FORECAST = {"bin": "10 ms"}
"""The same bins as the file's controller."""
WAYS = {
    "daemon": "`anabranch group`",
    "down": "`ip link set DEV down`",
    "release": "`ip link set DEV nomaster`",
}
SEEDS = (1, 2, 3)
"""Seeds of the kernel's random numbers, by which the driver's hash assigns flows to members differently."""
SHIFTS = range(1, 11)
"""Numbers of flows that share the steady rate in the simulator: each shifts the hash of the bulk flows."""
SILENCE_S = 1800.0
"""Longest real time without progress of the guest, on a machine that may be busy."""
BURSTS_MS = (2.0, 40.0)
CYCLES = 2
PROBES = {"network": {"members": 4, "rate_mbit": 10, "queue": 400, "delay_ms": 5}, "flows": 32, "load_mbit": 7}
"""A load of 70 % of a single member, in both directions."""
KINDS = ("transfers", "probe")
NAMED = ("kind", "cc", "method", "seed", "way", "tick_ms")
"""The keys that name a run."""
_LOADED = ("--method", "moving-average", "--set", "interval=2600 ms", "--set", "window=1", "--set", "utilization=0.95")
"""A controller that needs one member for that load."""


def quantity(text: str) -> float:
    """A number of Mbit/s, packets, ms or s."""
    found = re.fullmatch(r"([\d.]+) (Mbit/s|packets|ms|s)", text)
    if found is None:
        raise ValueError(text)
    return float(found[1])


def scenario() -> dict[str, Any]:
    """The file's content."""
    document: dict[str, Any] = tomllib.loads(FILE.read_text("utf-8"))
    return document


def control(method: str) -> dict[str, Any]:
    """Parameters of a method."""
    if method == "dynamic-lacp":
        return {key: value for key, value in scenario()["group"]["core"]["control"].items() if key != "kind"}
    return FORECAST if method == "peak-forecast" else {}


def cases() -> list[dict[str, Any]]:
    """The runs of the kernel."""
    binary = find(GROUP)
    document = scenario()
    group = document["group"]["core"]
    network = {
        "members": group["members"],
        "rate_mbit": quantity(group["rate"]),
        "queue": int(quantity(group["queue"]["limit"])),
        "delay_ms": quantity(document["link"]["left"]["delay"]),
    }
    end = quantity(document["duration"])
    flows = []
    for flow in document["flow"].values():
        rate = flow.get("workload", {}).get("rate")
        one = {"start": quantity(flow.get("start", "0 s")), "stop": quantity(flow.get("stop", f"{end} s"))}
        flows += [one | ({"rate_mbit": quantity(rate)} if rate else {})] * flow.get("count", 1)
    made = []
    for seed, method, cc in itertools.product(SEEDS, METHODS, CONTROLS):
        words = [word for key, value in control(method).items() for word in ("--set", f"{key}={value}")]
        arguments = ["--method", method, "--rate", group["rate"], "--lead", group["wake_time"], *words]
        made.append({
                "kind": "transfers", "network": network, "binary": binary, "cc": cc, "method": method, "seed": seed,
                "seconds": end, "flows": flows, "arguments": None if method == "off" else arguments,
            })  # fmt: skip
    for burst in BURSTS_MS:
        for way in WAYS:
            arguments = ["--rate", f"{PROBES['network']['rate_mbit']} Mbit/s", *_LOADED]  # type: ignore[index]
            probe = {"kind": "probe", "way": way, "tick_ms": burst, "cycles": CYCLES, "arguments": arguments}
            made.append({**PROBES, **probe, "binary": binary})
    return made


def measured(kinds: Collection[str]) -> dict[str, Any]:
    """Run the cases of some kinds in a kernel in virtual time; the others keep their stored outcomes.

    An interrupted measurement continues with the cases that are missing.

    Raises:
        RunFailedError: The kernel or a command in it failed.
    """
    image = chosen(os.environ.get(VARIABLE) or KERNEL)
    stored = json.loads(DATA.read_text("utf-8"))["runs"] if DATA.exists() else []
    part = DATA.with_suffix(".part")
    begun = json.loads(part.read_text("utf-8")) if part.exists() else {}
    found = begun["runs"] if begun.get("kernel") == image.release else []
    done = [{key: run[key] for key in NAMED if key in run} for run in found]
    for case in cases():
        name = {key: case[key] for key in NAMED if key in case}
        if case["kind"] not in kinds or name in done:
            continue
        with Job() as job:
            (job.folder / "cases.json").write_text(json.dumps([case]), "utf-8")
            command = [sys.executable, str(HOSTS), str(Job.INSIDE)]
            ended = job.run(image, command, seed=case.get("seed", 1), silence_s=SILENCE_S)
            if ended.status != 0:
                raise RunFailedError(f"the hosts ended with {ended.status}: {ended.err.strip()}")
            (outcome,) = json.loads((job.folder / "outcomes.json").read_text("utf-8"))
        outcome.pop("log", None)
        print(name, file=sys.stderr, flush=True)
        found.append(name | outcome)
        part.write_text(json.dumps({"kernel": image.release, "runs": found}), "utf-8")
    part.unlink(missing_ok=True)
    return {"kernel": image.release, "runs": found + [run for run in stored if run["kind"] not in kinds]}


def simulated(cc: str, method: str, shift: int = 1) -> tuple[dict[str, Any], list[tuple[float, float]]]:
    """The simulator's figures, and the active members over time."""
    words = [
        f"{key} = '{value}'" if isinstance(value, str) else f"{key} = {value}" for key, value in control(method).items()
    ]
    kind = ", ".join([f"kind = '{METHODS[method]}'", *words])
    steady = quantity(scenario()["flow"]["steady"]["workload"]["rate"]) * 1000 / shift
    made = Scenario.from_file(FILE).with_sets(
        f"flow.bulk.cc={cc}", f"group.core.control={{ {kind} }}",
        f"flow.steady.count={shift}", f"flow.steady.workload.rate={steady:.3f} kbit/s",
    )  # fmt: skip
    run = made.run(samples_ms=100)
    summary: dict[str, Any] = dict(run.summary)
    bulk = [flow for name, flow in summary["flows"].items() if name.startswith("bulk")]
    table = run.table("group_samples")
    over_time = list(zip(table["time_s"].to_list(), table["active_members"].to_list(), strict=True))
    return {
        "goodput": rate(sum(flow["delivered_bytes"] for flow in bulk)),
        "retransmissions": sum(flow["retransmitted_packets"] for flow in summary["flows"].values()),
        "drops": sum(summary["links"]["core"][way]["dropped_packets"] for way in ("forward", "reverse")),
        "off": summary["groups"]["core"]["member_seconds_off"],
    }, over_time


def rate(octets: float) -> float:
    """The rate of the bulk flows in Mbit/s, while they send."""
    bulk = scenario()["flow"]["bulk"]
    return octets * 8 / 1e6 / (quantity(bulk["stop"]) - quantity(bulk["start"]))


def of_kernel(run: Mapping[str, Any]) -> dict[str, Any]:
    """The same figures of a run of the kernel."""
    changes = run.get("report", {}).get("changes", {})
    return {
        "goodput": rate(sum(flow["bytes"] for flow in run["flows"][1:])),
        "retransmissions": sum(flow["retransmissions"] for flow in run["flows"]),
        "drops": run["drops"],
        "off": run["report"]["member_seconds_off"] if "report" in run else 0.0,
        "out": changes.get("taken_out", 0),
        "in": changes.get("brought_back", 0),
    }


def spread(found: Sequence[Mapping[str, Any]], what: str, digits: int = 0) -> str:
    """The mean of a figure, with the smallest and the largest run."""
    values = [one[what] for one in found]
    mean = f"{statistics.fmean(values):.{digits}f}"
    least, most = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return mean if least == most == mean else f"{mean} ({least}–{most})"


def transfers_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Goodput and sleep, with both engines side by side."""
    rows = []
    for method, cc in itertools.product(METHODS, CONTROLS):
        theirs = [
            of_kernel(run) for run in runs if run["kind"] == "transfers" and (run["cc"], run["method"]) == (cc, method)
        ]
        if not theirs:
            continue
        ours = [simulated(cc, method, shift)[0] for shift in SHIFTS]
        row = [cc, method]
        for what, digits in (("goodput", 1), ("off", 1), ("drops", 0), ("retransmissions", 0)):
            row += [spread(found, what, digits) for found in (ours, theirs)]
        rows.append([*row, f"{spread(theirs, 'out')} / {spread(theirs, 'in')}"])
    head = ["control", "method", "goodput, simulator", "kernel", "member s asleep, simulator", "kernel",
            "queue drops, simulator", "kernel", "retransmissions, simulator", "kernel", "out / in, kernel"]  # fmt: skip
    return markdown.table(head, rows)


def ways_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Frames lost and reordered by each way."""
    counts = ("lost_forward", "lost_reverse", "reordered_forward", "reordered_reverse")
    rows = [
        [
            WAYS[run["way"]], f"{run['tick_ms']:g} ms", f"{run['taken_out']} / {run['brought_back']}",
            f"{run['sent']:,}", *(str(run[count]) for count in counts),
        ]
        for run in runs if run["kind"] == "probe"
    ]  # fmt: skip
    head = [
        "taken out by",
        "a burst every",
        "out / in",
        "frames",
        "lost, forward",
        "reverse",
        "reordered, forward",
        "reverse",
    ]
    return markdown.table(head, rows)


def figures(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Figure]]:
    """Members over time, of the simulator and of the kernel."""
    shown = [
        run
        for run in runs
        if run["kind"] == "transfers"
        and run["cc"] == "cubic"
        and run["method"] != "off"
        and run.get("seed", SEEDS[0]) == SEEDS[0]
    ]
    with house_style():
        figure = Figure(figsize=(6.4, 3.4))
        places = figure.subplots(len(shown), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for place, run in zip(places, shown, strict=True):
            _, over_time = simulated(run["cc"], run["method"])
            place.step(*zip(*over_time, strict=True), where="post", color=COLOURS[0], label="simulator")
            times, working, _ = zip(*run["working"], strict=True)
            place.step(times, working, where="post", color=COLOURS[1], linestyle="--", label="Linux bond")
            place.set_ylabel("members")
            place.set_title(run["method"], loc="left")
            place.set_ylim(0, 4.4)
        places[0].legend(loc="lower right")
        places[-1].set_xlabel("time in s; twelve CUBIC flows from 10 s to 26 s")
        yield "link-group-members", figure


def comparison(data: Mapping[str, Any]) -> Comparison:
    """The page's parts."""
    runs = data["runs"]
    parts = {
        "transfers": transfers_table(runs),
        "ways": ways_table(runs),
        "kernel": f"Linux {data['kernel']}, in virtual time.",
    }
    return Comparison("link-group", parts, (), lambda: figures(runs), folder="docs/guides")


def main() -> int:
    """Measure, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stored", action="store_true", help="with --write: do not run the kernel")
    parser.add_argument("--part", choices=KINDS, help="run these cases only")
    given = parser.parse_args()
    kinds = KINDS if given.part is None else (given.part,)
    data = json.loads(DATA.read_text("utf-8")) if given.check or given.stored else measured(kinds)
    made = comparison(data)
    if given.check:
        outdated = stale(made)
        print("\n".join(outdated) or "up to date")
        return int(bool(outdated))
    if given.write:
        DATA.write_text(json.dumps(data) + "\n", "utf-8")
        write(made)
    else:
        print("\n\n".join(made.parts.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
