"""Rewrite the digests from the installed package.

With ``--robustness`` also the inputs of the studies' robustness, which include the digests of their
runs. This is right only if the digest has changed and no result has; otherwise recompute the
robustness (``anabranch study NAME --robustness``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from anabranch import _engine
from anabranch.files.output import to_json
from anabranch.files.output_file import write_whole
from anabranch.study import Study
from anabranch.study.results import Condition, Pool
from anabranch.study.robustness import asked, inputs_digest

ROOT = Path(__file__).resolve().parents[2]
DIGESTS = Path(__file__).with_name("digests.tsv")

CASES: list[tuple[str, list[str]]] = [
    ("studies/reordering/reordering.toml", []),
    ("studies/reordering/reordering.toml", ["flow.main.cc=new-reno", "flow.main.stack=rfc"]),
    (
        "studies/reordering/reordering.toml",
        ["flow.main.cc=cubic-plus", "link.bottleneck.forward.queue.reorder.interval=10"],
    ),
    (
        "studies/reordering/reordering.toml",
        ['link.egress.impair=[{ kind = "bernoulli-loss", rate = 0.01 }]', "flow.main.count=3"],
    ),
    ("scenarios/fairness.toml", ["duration=5 s"]),
    ("scenarios/fairness.toml", ["duration=5 s", "link.bottleneck.forward.queue.select=space-saving"]),
    (
        "scenarios/fairness.toml",
        [
            "duration=5 s",
            "link.bottleneck.forward.queue="
            '{ kind = "red", min_threshold = "20 kB", max_threshold = "60 kB", gentle = true, adaptive = true }',
        ],
    ),
    ("scenarios/link-aggregation.toml", ["duration=5 s"]),
    (
        "scenarios/link-aggregation.toml",
        [
            "duration=5 s",
            "flow.main.count=5",
            "group.core.spread=per-flow",
            "group.core.delay=1 ms",
            'group.core.impair=[{ kind = "bernoulli-loss", rate = 0.01 }]',
            'group.core.control={ kind = "ewma-hysteresis", interval = "20 ms" }',
            "group.core.wake_time=5 ms",
        ],
    ),
]


def digest(file: str, sets: list[str]) -> str:
    """The digest of one case."""
    run = _engine.run((ROOT / file).read_text(), file, sets)
    return str(json.loads(run.summary_json)["digest"])


def renew_robustness(file: Path) -> None:
    """Rewrite the inputs of a study's robustness."""
    definition = Study.load(file.parent).definition
    pool = Pool(definition)
    jobs = asked(definition, pool, Condition())
    pool.make(jobs)
    kept = json.loads(file.read_text())
    kept["computed_from"] = inputs_digest(definition, pool.results(jobs))
    write_whole(file, to_json(kept))


if __name__ == "__main__":
    lines = ["\t".join([file, digest(file, sets), *sets]) for file, sets in CASES]
    DIGESTS.write_text("\n".join(lines) + "\n")
    if "--robustness" in sys.argv[1:]:
        for study in sorted(ROOT.glob("studies/*/robustness.json")):
            renew_robustness(study)
