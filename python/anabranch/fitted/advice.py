"""Simulates remedies on the fitted path, alone and beside a CUBIC flow, and ranks them.

The gain in goodput is computed for each seed, relative to the run without the remedy. A remedy
helps if the interval of its gain is above 2 %, or if it reduces the mean round trip by a fifth
without loss of goodput. The rank is the gain, plus half of the reduction of the round trip, minus
the loss of a competing CUBIC flow and the price of the effort.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.simulated import Advice, KernelFigures, Mean
from anabranch.fitted.remedies import PRICE, Remedy, case, relevant
from anabranch.fitted.scenario import APPLICATION, FLOW, LINK, Fitted
from anabranch.fitted.words import where
from anabranch.scenario import Scenario
from anabranch.statistics.statistics import Interval, mean_interval
from anabranch.text import toml_text
from anabranch.text.lines import percent

SEEDS = tuple(range(1, 6))
LONGEST_S = 60.0
"""Longest simulated time of a connection."""
LIVE_S = 20.0
"""Longest live run of a connection."""
OF_THE_KERNEL = frozenset(
    {"bbr", "cubic", "reno", "buffer", "codel", "fq-codel", "receive-window", "send-buffer", "gateway"}
)
"""Remedies that a live run can have."""
SWITCHES_OF_THE_KERNEL = frozenset({"mss", "sack", "timestamps", "send_buffer", "receive_window"})
OTHER = "other"
"""The competing flow."""
LEAST_GAIN = 0.02
LEAST_RELIEF = 0.2
HARM = 0.05
"""Loss of goodput from which a shorter round trip is no help, and from which an uncertain loss of other
flows is reported."""

UNSEEN_RATE = " The connection never filled the path, so that the path's rate is an assumption: it bounds the gain."


@dataclass(frozen=True)
class Outcome:
    """One remedy's runs, by seed."""

    remedy: Remedy
    goodput: tuple[float, ...]
    rtt: tuple[float, ...]
    others: tuple[float, ...]


def advised(connection: Connection, fitted: Fitted) -> list[Advice]:
    """The remedies for the connection's causes, best first."""
    outcomes = [_simulated(fitted, remedy) for remedy in relevant(case(connection, fitted))]
    base = outcomes[0]
    rows = [_row(outcome, base) for outcome in outcomes]
    return sorted(rows, key=lambda row: (not row["helps"], -row["score"], row["remedy"]))


def document(
    fitted: Fitted, remedy: Remedy, *, with_other: bool = False, longest_s: float = LONGEST_S
) -> dict[str, Any]:
    """The scenario with a remedy, and optionally with a competing flow."""
    made = copy.deepcopy(fitted.document)
    duration = min(float(made["duration"].split()[0]), longest_s)
    made["duration"] = f"{duration:.3f} s"
    for path, value in remedy.set.items():
        if path == "gateway":
            _bond(made)
        else:
            _assign(made, path.split("."), value)
    if with_other:
        # Both flows are bulk flows: otherwise one would end first and leave the path to the other.
        made["flow"][FLOW].pop("workload", None)
        flow = {key: value for key, value in made["flow"][FLOW].items() if key in ("from", "to")}
        made["flow"][OTHER] = {**flow, "cc": "cubic", "start_spread": "200 ms"}
    return made


def _assign(made: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        made = made.setdefault(key, {})
    made[keys[-1]] = value


def _bond(made: dict[str, Any]) -> None:
    """Add a second link like the first, and gateways that split packets between both."""
    links = made["link"]
    first = links[LINK]
    end = first["between"][1]
    first["between"] = ["left", "right"]
    links["path2"] = copy.deepcopy(first)
    links["near"] = {"between": ["sender", "left"]}
    links["far"] = {"between": ["right", end]}
    made["gateway"] = {
        "bond": {
            "between": ["left", "right"],
            "routes": [LINK, "path2"],
            "split": "earliest-arrival",
            "restore": "adaptive",
            "overhead": "40 bytes",
        }
    }
    for change in made.get("at", ()):
        change["set"].update({key.replace(f".{LINK}.", ".path2."): rate for key, rate in change["set"].items()})


def _simulated(fitted: Fitted, remedy: Remedy) -> Outcome:
    alone = Scenario.from_text(toml_text.write_document(document(fitted, remedy)), file=f"{remedy.name}.toml")
    beside = Scenario.from_text(
        toml_text.write_document(document(fitted, remedy, with_other=True)), file=f"{remedy.name}-beside.toml"
    )
    goodput, rtt, others = [], [], []
    for seed in SEEDS:
        flow = alone.run(seed=seed, digest=False).flows[FLOW]
        goodput.append(flow["goodput_mbit_s"])
        rtt.append(float(flow["mean_srtt_ms"] or 0.0))
        others.append(beside.run(seed=seed, digest=False).flows[OTHER]["goodput_mbit_s"])
    return Outcome(remedy, tuple(goodput), tuple(rtt), tuple(others))


def _row(outcome: Outcome, base: Outcome) -> Advice:
    gain = _changes(outcome.goodput, base.goodput)
    relief = _changes(outcome.rtt, base.rtt)
    cost = _changes(outcome.others, base.others)
    least = gain["mean"] if gain["low"] is None else gain["low"]
    shorter = relief["mean"] if relief["high"] is None else relief["high"]
    helps = least > LEAST_GAIN or (shorter < -LEAST_RELIEF and least > -HARM)
    score = gain["mean"] - relief["mean"] / 2 + min(0.0, cost["mean"]) - PRICE[outcome.remedy.effort]
    return {
        "remedy": outcome.remedy.name,
        "title": outcome.remedy.title,
        "effort": outcome.remedy.effort,
        "set": outcome.remedy.set,
        "goodput_mbit_s": _interval(mean_interval(outcome.goodput)),
        "gain": gain,
        "rtt_ms": _interval(mean_interval(outcome.rtt)),
        "rtt_change": relief,
        "cost_to_others": {
            "mean": -cost["mean"],
            "low": None if cost["high"] is None else -cost["high"],
            "high": None if cost["low"] is None else -cost["low"],
        },
        "helps": helps and outcome is not base,
        "score": score,
        "seeds": len(SEEDS),
    }


def _changes(values: Sequence[float], base: Sequence[float]) -> Mean:
    """Relative changes of pairs of values, as mean and interval."""
    pairs = [value / before - 1 for value, before in zip(values, base, strict=True) if before > 0]
    return _interval(mean_interval(pairs)) if pairs else {"mean": 0.0, "low": None, "high": None}


def _interval(of: Interval) -> Mean:
    """Mean and interval; equal runs have no interval."""
    is_random = of.lower is not None and of.upper is not None and of.upper > of.lower
    return {"mean": of.mean, "low": of.lower if is_random else None, "high": of.upper if is_random else None}


def verdict(connection: Connection, rows: Sequence[Advice]) -> str:
    """The advice in a sentence: the best remedy, its gain, and its cost to other flows."""
    helping = [row for row in rows if row["helps"]]
    if helping:
        best = helping[0]
        title = f"{best['title'][0].upper()}{best['title'][1:]}"
        assumed = "" if connection["path"]["rate_mbit_s"]["seen"] == "measured" else UNSEEN_RATE
        return f"{title}: {_effects(best)} (to be changed {where(best['effort'])}).{assumed}"
    limits = connection["directions"][connection["path"]["direction"]]["limits_s"]
    least = APPLICATION * connection["duration_s"]
    if limits["application"] + limits["round-trips"] > least:
        if limits["round-trips"] > limits["application"]:
            return "Nothing helps but fewer round trips: the programs take turns, and TCP cannot shorten the path."
        return "Nothing helps: the application was the limit, not the path or TCP."
    return "Nothing helps: no remedy raises the goodput or shortens the round trip significantly."


def _effects(row: Advice) -> str:
    """Goodput, round trip, and the share of another flow."""
    told = [f"{percent(row['gain']['mean'], signed=True)} goodput"]
    relief = row["rtt_change"]
    if abs(relief["mean"]) >= HARM and _is_certain(relief):
        told.append(f"round trip {percent(relief['mean'], signed=True)}")
    return f"{', '.join(told)}, and {_on_others(row['cost_to_others'])}"


def _on_others(cost: Mean) -> str:
    """The loss of competing flows by a remedy; an uncertain loss is still reported if it is large."""
    share = percent(abs(cost["mean"]))
    if _is_certain(cost) and percent(cost["mean"]) != percent(0.0):
        return f"takes {share} from the others" if cost["mean"] > 0 else f"gives the others {share} more"
    return f"may take {share} from the others" if cost["mean"] >= HARM else "takes nothing measurable from the others"


def _is_certain(change: Mean) -> bool:
    """Whether the interval excludes 0; equal runs have no interval."""
    return change["low"] is None or change["high"] is None or change["low"] > 0 or change["high"] < 0


def repeat(connection: Connection, fitted: Fitted, engine: str, kernel: str | None = None) -> None:
    """Repeat the best remedy and the unchanged run with the TCP of a kernel; adds the figures to the rows.

    Args:
        connection: The connection.
        fitted: Its scenario.
        engine: ``"live"``, or ``"kernel"`` for a kernel in virtual time.
        kernel: As of :func:`anabranch.kernel.images.chosen`.

    Raises:
        UserError: This machine does not let us run live, or there is no such kernel.
        RunFailedError: The machine was too slow, or the kernel failed.
    """
    rows = connection["advice"]
    best = next((row["remedy"] for row in rows if row["helps"] and row["remedy"] in OF_THE_KERNEL), None)
    for row in rows:
        if row["remedy"] not in ("nothing", best):
            continue
        remedy = Remedy(row["remedy"], row["title"], row["effort"], row["set"])
        made = document(fitted, remedy, longest_s=LIVE_S)
        transport = made["flow"][FLOW]["transport"]
        for switch in set(transport) - SWITCHES_OF_THE_KERNEL:
            del transport[switch]
        if "receive_window" in transport:
            transport["receive_autotuning"] = False
        text = toml_text.write_document(made)
        scenario = Scenario.from_text(text, file=f"{remedy.name}.toml")
        made_there = scenario.run_kernel(kernel=kernel) if engine == "kernel" else scenario.run_live(trace="off")
        flow = made_there.flows[FLOW]
        figures: KernelFigures = {"goodput_mbit_s": flow["goodput_mbit_s"], "rtt_ms": flow["mean_srtt_ms"]}
        row["kernel" if engine == "kernel" else "live"] = figures
