"""Our own TCP at one end of a live run, the kernel's at the other.

What both say to each other, over every path and with every option, and on which wrong systems the checks fail, is in
``crates/live/tests/all/own_end.rs``; here is what a user sees of it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from anabranch.scenario import Scenario

from .conftest import command

SIZE = 400_000

PATH = """
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets", reorder = { kind = "interval", interval = 5 } }
impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
"""

FLOW = f"""
[flow.main]
from = "A"
to = "B"
workload = {{ kind = "file", size = "{SIZE} bytes" }}
"""


def at(host: str) -> str:
    return f'[host.{host}]\ntcp = "own"\n'


def test_the_simulator_takes_the_key(live_machine: None) -> None:
    text = PATH + FLOW
    with_key, without = (Scenario.from_text(each).run().summary["digest"] for each in (text + at("A"), text))
    assert with_key == without


@pytest.mark.brief
@pytest.mark.parametrize(
    ("changes", "where", "told"),
    [
        (at("A").replace("own", "owm") + FLOW, "10:7", "own"),
        (at("A") + 'exec = ["true"]\n' + FLOW, "tcp", "sockets are the kernel's"),
        (at("A") + '[host.B]\nexec = ["true"]\n' + FLOW, "tcp", "nobody to talk to"),
        (
            at("A") + FLOW.replace("file", "request-response").replace(f', size = "{SIZE} bytes"', ""),
            "workload",
            "bulk",
        ),
        (at("A") + FLOW + 'fec = "xor"\n', "fec", "no error correction"),
        (FLOW + 'stack = "rfc"\n', "stack", 'tcp = "own"'),
    ],
)
def test_what_cannot_be_is_refused(live_machine: None, tmp_path: Path, changes: str, where: str, told: str) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + changes)
    done = subprocess.run(command("run", file, "--engine", "live"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert where in done.stderr
    assert told in done.stderr
    assert done.stdout == ""
