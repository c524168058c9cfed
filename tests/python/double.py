"""A stand-in for the compiled engine, for machines where it has not been built.

It is no simulator: its figures come from formulas invented here so that the Python half has something to carry. It is
put in place by ``conftest.py`` only when ``anabranch._engine`` cannot be imported, and no test asserts its figures.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
from collections.abc import Callable
from typing import Any

import polars as pl

from anabranch import toml_text


class ScenarioError(ValueError):
    def __init__(self, message: str, file: str, line: int | None = None, column: int | None = None) -> None:
        self.file, self.line, self.column, self.message = file, line, column, message
        place = ":".join(str(p) for p in (file, line, column) if p is not None)
        super().__init__(f"{place}: {message}")


def _scenario(text: str, file: str, sets: list[str], seed: int | None) -> dict[str, Any]:
    try:
        document = toml_text.parse(text, file)
    except ValueError as error:
        raise ScenarioError(
            getattr(error, "message", ""), file, getattr(error, "line", None), getattr(error, "column", None)
        ) from None
    for change in sets:
        path, _, value = change.partition("=")
        keys = next(iter(toml_text.locate(f"{path} = 0\n")), ())
        keys = max(toml_text.locate(f"{path} = 0\n"), key=len, default=keys)
        at: Any = document
        for key in keys[:-1]:
            if isinstance(at, list):
                at = at[int(key)]
            else:
                if not isinstance(at.get(key), (dict, list)):
                    at[key] = {}
                at = at[key]
        if isinstance(at, list):
            at[int(keys[-1])] = toml_text.parse_value(value)
        else:
            at[keys[-1]] = toml_text.parse_value(value)
    known = {"title", "duration", "seed", "warmup", "at", "link", "group", "gateway", "host", "flow", "sweep"}
    for key in document:
        if key not in known:
            place = toml_text.locate(text).get((key,))
            line, column = (place[0].line, place[0].column) if place else (None, None)
            raise ScenarioError(f'unknown key "{key}"', file, line, column)
    if not document.get("flow"):
        raise ScenarioError("a scenario needs at least one [flow.NAME]", file)
    if seed is not None:
        document["seed"] = seed
    document.setdefault("seed", 1)
    return document


def version() -> str:
    return "0.0.0+double"


def resolve(text: str, file: str, sets: list[str], seed: int | None) -> str:
    document = _scenario(text, file, sets, seed)
    planned = dict(document.pop("sweep", {}))
    return json.dumps(
        {
            "title": document.get("title", ""),
            "seed": document["seed"],
            "duration_s": float(document.get("duration", "10 s").split()[0]),
            "warmup_s": 0.0,
            "flows": list(document.get("flow", {})),
            "links": list(document.get("link", {})),
            "sweep": {"repeat": planned.pop("repeat", 1), "grid": planned},
            "resolved_scenario": document,
        }
    )


class Run:
    def __init__(self, document: dict[str, Any], digest: bool, samples_ms: float | None, packets: bool) -> None:
        self.document = document
        self.samples_ms = samples_ms
        self.packets = packets
        self.duration = float(document.get("duration", "10 s").split()[0])
        flows = {}
        for name, flow in document["flow"].items():
            for i in range(flow.get("count", 1)):
                copies = flow.get("count", 1) > 1
                flows[f"{name}/{i}" if copies else name] = self._flow(flow, document)
        self.flows = flows
        random = document["seed"] if "start_spread" in json.dumps(document) or "rate = 0" in str(document) else 0
        identity = {k: v for k, v in document.items() if k not in ("seed", "title", "sweep")}
        content = json.dumps([identity, random], sort_keys=True)
        self.summary_json = json.dumps(
            {
                "format": 1,
                "scenario": document.get("title", ""),
                "seed": document["seed"],
                "engine": "sim",
                "duration_s": self.duration,
                "digest": hashlib.sha256(content.encode()).hexdigest()[:32] if digest else None,
                "anabranch_version": version(),
                "resolved_scenario": document,
                "platform": "double",
                "flows": flows,
                "links": {
                    name: {
                        d: {
                            "sent_packets": 8000,
                            "dropped_packets": 3,
                            "lost_packets": 0,
                            "reordered_packets": 12,
                            "utilization": 0.9,
                            "mean_queue_packets": 40.0,
                            "max_queue_packets": 99,
                            "p95_queue_delay_ms": 80.0,
                        }
                        for d in ("forward", "reverse")
                    }
                    for name in document.get("link", {})
                },
                "groups": {},
                "fairness": {"jain_index": 1.0},
                "engine_stats": {
                    "events": 1000,
                    "delivered_packets": 8000,
                    "cpu_s": 0.01,
                    "wall_s": 0.01,
                    "peak_rss_bytes": 8_000_000,
                },
            }
        )

    def _interval(self, document: dict[str, Any]) -> float:
        for link in document.get("link", {}).values():
            queue = link.get("forward", {}).get("queue", {})
            if isinstance(queue, dict) and "reorder" in queue:
                return float(queue["reorder"]["interval"])
        return math.inf

    def _flow(self, flow: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        cc = flow.get("cc", "cubic")
        ri = self._interval(document)
        wobble = 0.01 * math.sin(document["seed"] * 7.1) if "start_spread" in flow else 0.0
        share = 1.0
        if ri < 100:
            share = {"cubic": 0.4, "cubic-plus": 0.9 if ri >= 30 else 0.42}.get(cc, 0.5) + ri / 1000 + wobble
        reordered = 0 if ri >= 100 else 1 / (ri + 1)
        return {
            "goodput_mbit_s": 9.3 * share,
            "throughput_mbit_s": 9.54455 * share,
            "delivered_bytes": int(11_000_000 * share),
            "sent_packets": int(8000 * share),
            "retransmitted_packets": int(100 * reordered),
            "spurious_retransmissions": int(90 * reordered),
            "fast_recoveries": int(200 * reordered),
            "timeouts": 0,
            "mean_cwnd_packets": 60.0 * share,
            "mean_srtt_ms": 90.0,
            "min_rtt_ms": 70.0,
            "flow_completion_time_s": None,
            "reordered_ratio": reordered,
            "reordering_extent_p95_packets": None if ri >= 100 else ri,
            "reordering": {"n_reordering": {"1": reordered}, "density": {"0": 1 - reordered}},
        }

    def table(self, name: str) -> pl.DataFrame:
        if name == "flows":
            rows = [{"flow": n, **{k: v for k, v in f.items() if k != "reordering"}} for n, f in self.flows.items()]
            return pl.DataFrame(rows)
        if name == "links":
            links = json.loads(self.summary_json)["links"]
            return pl.DataFrame([{"link": n, "direction": d, **v} for n, ds in links.items() for d, v in ds.items()])
        step = (self.samples_ms or 0) / 1000
        times = [i * step for i in range(int(self.duration / step) + 1)] if step else []
        if name == "samples":
            rows = []
            for flow, figures in self.flows.items():
                for t in times:
                    cwnd = figures["mean_cwnd_packets"] * (1 + 0.5 * math.sin(t * 2)) + 2
                    in_slow_start = t < 0.6 or (figures["mean_cwnd_packets"] > 50 and 1 < t < 1.3)
                    rows.append(
                        {
                            "time_s": t,
                            "flow": flow,
                            "cwnd_packets": cwnd,
                            "ssthresh_packets": None if t < 0.6 else cwnd * 0.7,
                            "in_flight_packets": cwnd * 0.95,
                            "srtt_ms": 80 + 20 * math.sin(t * 2),
                            "rto_ms": 1000.0,
                            "delivered_bytes": int(1.1e6 * t),
                            "fast_recoveries": int(t),
                            "timeouts": 0,
                            "retransmitted_packets": int(2 * t),
                            "state": "slow-start" if in_slow_start else "open",
                        }
                    )
            return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame({"time_s": [], "flow": []})
        if name == "link_samples":
            rows = [
                {
                    "time_s": t,
                    "link": link,
                    "direction": d,
                    "queue_packets": max(0.0, 50 * math.sin(t * 2)),
                    "queue_bytes": 0.0,
                    "sent_packets": int(800 * t),
                    "dropped_packets": int(t),
                }
                for link in self.document.get("link", {})
                for d in ("forward", "reverse")
                for t in times
            ]
            return pl.DataFrame(rows)
        if name == "packets" and self.packets:
            return self._packets()
        return pl.DataFrame({"flow": []}, schema={"flow": pl.String})

    def _packets(self) -> pl.DataFrame:
        rows = []
        count = int(self.document.get("packets_of_double", 4000))
        for flow in self.flows:
            for i in range(count):
                sent = i * self.duration / count
                late = i % 41 == 0
                lost = i % 977 == 3
                rows.append(
                    {
                        "flow": flow,
                        "direction": "forward",
                        "packet_index": i,
                        "sequence_bytes": i * 1448 - (40 * 1448 if i % 41 == 5 else 0),
                        "payload_bytes": 1448,
                        "size_bytes": 1500,
                        "retransmission": i % 41 == 5,
                        "sent_s": sent,
                        "received_s": None if lost else sent + 0.035 + (0.04 if late else 0.0),
                        "fate": "dropped" if lost else "delivered",
                        "where": "link.bottleneck.forward.queue" if lost else None,
                        "queue_delay_ms": 20.0,
                        "reordered": late,
                        "reordering_extent_packets": 30 + i % 20 if late else 0,
                    }
                )
        return pl.DataFrame(rows, infer_schema_length=None)


def run(
    text: str,
    file: str,
    sets: list[str],
    *,
    seed: int | None = None,
    digest: bool = True,
    samples_ms: float | None = None,
    packets: bool = False,
    fast_path: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Run:
    if progress:
        progress(1.0)
    return Run(_scenario(text, file, sets, seed), digest, samples_ms, packets)


def run_many(
    jobs: list[tuple[str, str, list[str], int | None]],
    *,
    threads: int | None = None,
    digest: bool = True,
    samples_ms: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Run]:
    out = []
    for i, (text, file, sets, seed) in enumerate(jobs):
        out.append(run(text, file, sets, seed=seed, digest=digest, samples_ms=samples_ms))
        if progress:
            progress(i + 1)
    return out


def schema() -> str:
    return "{}"


def registry() -> str:
    return json.dumps(
        [
            {
                "kind": "cc",
                "name": "cubic",
                "title": "CUBIC",
                "summary": "Window grows as a cubic function of the time since the last loss.",
                "sources": [{"id": "RFC 9438", "items": ["§4.2", "§4.6"]}],
                "parameters": [
                    {
                        "name": "beta",
                        "type": "ratio",
                        "default": 0.7,
                        "description": "Share of the window kept on loss.",
                        "minimum": 0.1,
                        "maximum": 1.0,
                    }
                ],
                "details": {},
            },
            {
                "kind": "queue",
                "name": "drop-tail",
                "title": "Drop tail",
                "summary": "First in, first out, with a limit.",
                "sources": [],
                "parameters": [],
                "details": {},
            },
            {
                "kind": "stack",
                "name": "rfc",
                "title": "As the RFCs say",
                "summary": "SACK and RFC 6675 recovery.",
                "sources": [],
                "parameters": [],
                "details": {"sack": True, "initial_cwnd": 10},
            },
        ]
    )


def module() -> types.ModuleType:
    made = types.ModuleType("anabranch._engine", __doc__)
    for name in ("ScenarioError", "Run", "version", "resolve", "run", "run_many", "schema", "registry"):
        setattr(made, name, globals()[name])
    return made
