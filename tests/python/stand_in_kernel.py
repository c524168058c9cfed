"""A stand-in for a guest: it makes the run that is asked for in the simulator.

The first argument is the job's folder, the second the release, the third a file to which a line for each run is added.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from dataclasses import replace
from pathlib import Path

from anabranch.kernel.engine import ANSWER, PROGRESS, REQUEST
from anabranch.result import LiveRunResult

folder, release, log = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
scenario, options = pickle.loads((folder / REQUEST).read_bytes())  # noqa: S301 - the test's own process wrote it
seed = scenario.resolve(seed=options["seed"], live=True)["seed"]
with log.open("a") as written:
    written.write(f"{release} {seed}\n")
if (log.parent / f"hold-{seed}").exists():
    time.sleep(600)
(folder / PROGRESS).write_text("0.500", "ascii")
time.sleep(0.1)
# The live engine always records windows.
samples_ms = options.get("samples_ms") or 10.0
made = scenario.run(seed=options["seed"], samples_ms=samples_ms, captures=options.get("captures", ()))
_, (kept, recorded) = made.__reduce__()
live = {
    "audit": {"reasons": []},
    "programs": [],
    "machine": {"kernel": release, "machine": "x86_64", "processors": 1},
}
summary = {**json.loads(kept.summary_json), "engine": "kernel", "live": live}
result = LiveRunResult(replace(kept, summary_json=json.dumps(summary)), recorded)
(folder / ANSWER).write_bytes(pickle.dumps(("result", result)))
(folder / "status").write_text("0")
