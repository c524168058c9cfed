"""Write the native engine's digests and diagnoses, for comparison with the engine of the studio.

python studio/tests/native.py FOLDER [RANDOM]

FOLDER/digests.json has the digest of each ready-made scenario that reads no files, and of RANDOM (300) random ones.
FOLDER/captures.json has the diagnosis of each capture of the documentation and of qlogs of one simulated connection
(FOLDER/qlogs) in all their forms, and digests of the fitted scenarios.
FOLDER/large.pcapng is a capture of more than 100 MB.
FOLDER/verdicts.json has the verdicts on the claims of some published studies, on the quick grid.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from anabranch import Scenario, Study, UserError, diagnose
from anabranch.fitted.scenario import fitted

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.python import quic_log, two_points  # noqa: E402 - of this checkout

JUDGED = ("link-aggregation", "multipath", "fairness", "reordering")
"""The studies whose runs of the quick grid take the studio's engine less than a minute each."""
MOST_S = 60.0
"""Longest ready-made scenario that is run."""
CONTROLS = ("reno", "cubic", "bbr", "bbr3", "vegas", "westwood-plus", "htcp", "compound", "bic")
STACKS = ("linux", "rfc", "ns3-2018", "bsd44-lite", "windows-7")
QUEUES = ("drop-tail", "codel", "pie", "fq-codel", "drr", "cake")


def random_scenario(number: int) -> str:
    """A path of one to three links with impairments and one to three flows."""
    draw = random.Random(number)  # noqa: S311 - no secret
    links = draw.randint(1, 3)
    lines = [
        f'title = "random {number}"',
        f'duration = "{draw.choice((1, 2, 3))} s"',
        f"seed = {draw.randint(0, 9999)}",
    ]
    for i in range(links):
        lines += [f"[link.l{i}]", f'between = ["n{i}", "n{i + 1}"]', f'rate = "{draw.choice((1, 5, 20, 80))} Mbit/s"']
        lines.append(f'delay = "{draw.choice((0.5, 3, 12, 60))} ms"')
        lines.append(f'queue = {{ kind = "{draw.choice(QUEUES)}", limit = "{draw.choice((20, 100, 1000))} packets" }}')
        impair = []
        if draw.random() < 0.5:
            impair.append(f'{{ kind = "bernoulli-loss", rate = {draw.choice((0.001, 0.01, 0.05))} }}')
        if draw.random() < 0.4:
            impair.append(f'{{ kind = "jitter", mean = "{draw.choice((1, 4))} ms", reorder = true }}')
        if draw.random() < 0.2:
            impair.append('{ kind = "duplicate", rate = 0.01 }')
        lines.append(f"impair = [{', '.join(impair)}]")
    for i in range(draw.randint(1, 3)):
        ends = ("n0", f"n{links}") if draw.random() < 0.8 else (f"n{links}", "n0")
        lines += [f"[flow.f{i}]", f'from = "{ends[0]}"', f'to = "{ends[1]}"', f'cc = "{draw.choice(CONTROLS)}"']
        lines += [f'stack = "{draw.choice(STACKS)}"', f"count = {draw.choice((1, 1, 2, 5))}"]
        if draw.random() < 0.3:
            lines.append(f'workload = {{ kind = "file", size = "{draw.choice((20, 300))} kB" }}')
    return "\n".join(lines) + "\n"


def digest(text: str, seconds: float = MOST_S) -> str | None:
    """The digest of a scenario; ``None`` if the studio does not run it, or it is too long for a test."""
    duration = re.search(r'^duration = "([0-9.]+) s"', text, re.M)
    if "file = " in text or "bpf" in text or duration is None or float(duration[1]) > seconds:
        return None
    return Scenario.from_text(text, file="scenario.toml").run().digest


def captured(path: Path) -> dict[str, Any]:
    """The report of a capture, and the digests of its connections' fitted scenarios by their numbers."""
    report = diagnose(path).content
    digests = {}
    for connection in report["connections"]:
        try:
            text = fitted(connection, str(path)).text
        except UserError:
            continue
        digests[str(connection["id"])] = Scenario.from_text(text, file="scenario.toml").run().digest
    return {"file": str(path), "report": report, "fitted": digests}


def qlogs(folder: Path) -> list[Path]:
    """Logs of a QUIC sender that loses packets at random: JSON and JSON-SEQ, in several versions."""
    scenario = (
        Scenario("A log", duration="6 s")
        .link("lan", between=("A", "M"), rate="1 Gbit/s", delay="0.1 ms")
        .link("wan", between=("M", "N"), rate="10 Mbit/s", delay="20 ms",
              queue={"kind": "drop-tail", "limit": "1 bdp"}, impair=[{"kind": "bernoulli-loss", "rate": 0.01}])
        .link("end", between=("N", "B"), rate="1 Gbit/s", delay="0.1 ms")
        .flow("main", source="A", target="B")
    )  # fmt: skip
    run = scenario.run(captures=["lan", "end"])
    near, far = (two_points.packets(run.pcapng(link)) for link in ("lan", "end"))
    events = list(quic_log.events(near, far))
    receiver = list(quic_log.events(near, far, of_receiver=True))
    forms = {
        "sequence.sqlog": quic_log.sequential(events),
        "late.qlog": quic_log.contained(events, late=True),
        "packed.qlog.gz": gzip.compress(quic_log.contained(events)),
        "columns.qlog": quic_log.columns(events),
        "receiver.sqlog": quic_log.sequential(receiver, vantage="server", version="0.4"),
        "cut.sqlog": quic_log.sequential(events)[:-40],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in forms.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in forms]


def large() -> bytes:
    """A capture of more than 100 MB: both directions of a fast path with rare losses."""
    scenario = (
        Scenario("A long download", duration="8 s")
        .link("path", between=("A", "B"), rate="800 Mbit/s", delay="10 ms",
              queue={"kind": "drop-tail", "limit": "1 bdp"}, impair=[{"kind": "bernoulli-loss", "rate": 0.0001}])
        .flow("main", source="A", target="B", cc="bbr")
    )  # fmt: skip
    return scenario.run(captures=["path"]).pcapng("path")


def main() -> None:
    """Write the files."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    folder.mkdir(parents=True, exist_ok=True)
    # Those of hosts need a kernel.
    files = (path for path in sorted((ROOT / "scenarios").rglob("*.toml")) if path.parent.name != "hosts")
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    texts |= {f"random {number}": random_scenario(number) for number in range(count)}
    made = [
        {"name": name, "scenario": text, "digest": found} for name, text in texts.items() if (found := digest(text))
    ]
    (folder / "digests.json").write_text(json.dumps(made), encoding="utf-8")
    captures = [*sorted((ROOT / "docs/captures").glob("*.pcap*.gz")), *qlogs((folder / "qlogs").absolute())]
    reports = [captured(path) for path in captures]
    (folder / "captures.json").write_text(json.dumps(reports), encoding="utf-8")
    (folder / "large.pcapng").write_bytes(large())
    judged = [Study.load(name).run(quick=True, figures=False).to_json() for name in JUDGED]
    (folder / "verdicts.json").write_text(json.dumps(judged), encoding="utf-8")
    print(f"{len(made)} digests, {len(reports)} diagnoses, {len(judged)} studies")  # noqa: T201


if __name__ == "__main__":
    main()
