"""A stand-in for a guest: it executes the requested run in the simulator.

The first argument is the job's folder, the second the release, the third a file that receives a
line for each run.
"""

from __future__ import annotations

import json
import marshal
import sys
import time
from pathlib import Path

from anabranch.kernel.inside import ANSWER, PROGRESS, REQUEST
from anabranch.scenario import Scenario

folder, release, log = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
request = marshal.loads((folder / REQUEST).read_bytes())  # noqa: S302 - the test's own process wrote it
(text, file, sets), keywords = request["call"]
scenario = Scenario.from_text(text, file=file).with_sets(*sets)
seed = scenario.resolve(seed=keywords["seed"], live=True)["seed"]
with log.open("a") as written:
    written.write(f"{release} {seed}\n")
if (log.parent / f"hold-{seed}").exists():
    time.sleep(600)
(folder / PROGRESS).write_text("0.500", "ascii")
time.sleep(0.1)
# The live engine always records windows.
samples_ms = keywords["samples_ms"] or 10.0
places = (keywords["captures"] or [[]])[0]
captures = [link if direction is None else f"{link}.{direction}" for link, direction in places]
made = scenario.run(seed=seed, samples_ms=samples_ms, captures=captures)
live = {
    "audit": {"reasons": []},
    "programs": [],
    "machine": {"kernel": release, "machine": "x86_64", "processors": 1},
}
summary = {**json.loads(made.summary_json), "engine": "kernel", "live": live}
tables = {name: made._run.table(name).columns() for name in request["tables"]}
_, (kept, _) = made.__reduce__()
answer = ("run", json.dumps(summary), tables, kept.captures, kept.left_out)
(folder / ANSWER).write_bytes(marshal.dumps(answer))
(folder / "status").write_text("0")
