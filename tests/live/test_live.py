"""One scenario file, real packets: what must hold in every live run."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from anabranch.scenario import Scenario

from .conftest import FLOW, PATH, Run, command, missing

WISHES = "/dev/cpu_dma_latency"
LOOK_S = 0.02


@pytest.mark.brief
def test_packets_are_conserved_by_the_counts_of_links_too(late_run: Run) -> None:
    """The engine's own account (`live.packets`) leaves these out. Nothing doubles packets, and there is no warm-up."""
    lossy = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]\nforward.queue'
    summary = late_run(PATH.replace("forward.queue", lossy) + FLOW + 'workload = { kind = "file", size = "3 MB" }\n')
    packets, audit = summary["live"]["packets"], summary["live"]["audit"]
    directions = [both[name] for both in summary["links"].values() for name in ("forward", "reverse")]
    dropped, lost = (sum(one[key] for one in directions) for key in ("dropped_packets", "lost_packets"))
    assert (dropped, lost) == (packets["dropped_packets"], packets["lost_packets"])
    assert lost > 10
    assert audit["taken_packets"] == audit["released_packets"] + dropped + lost + audit["in_flight_packets"]
    assert audit["foreign_packets"] == 0
    # What the kernels count of their devices, what left after the last look included.
    assert packets["kernel_sent"] >= audit["taken_packets"] > 1000
    assert packets["kernel_received"] == audit["released_packets"]


def test_the_machine_is_told(late_run: Run) -> None:
    """What a packet would be merged by is off, and that is read from the devices."""
    machine = late_run((PATH + FLOW).replace("3 s", "300 ms"))["live"]["machine"]
    assert set(machine["offloads"]) == {"A", "B"}
    for told in machine["offloads"].values():
        assert [told[name] for name in ("scatter_gather", "tso", "gso", "lro")] == [False] * 4
        assert isinstance(told["gro"], bool)
    assert machine["processor"]
    cpuinfo = Path("/proc/cpuinfo").read_text()
    assert "model name" not in cpuinfo or f": {machine['processor']}\n" in cpuinfo
    assert machine["asked_to_stay_awake"] is os.access(WISHES, os.W_OK)
    driver = Path("/sys/devices/system/cpu/cpuidle/current_driver")
    assert machine["idle_driver"] == (driver.read_text().strip() if driver.exists() else None)


def holding(run: subprocess.Popen[bytes]) -> bool:
    """Whether this run holds its wish that no processor sleeps: the file says what everybody wishes together."""
    for descriptor in Path(f"/proc/{run.pid}/fd").iterdir():
        with suppress(OSError):
            if descriptor.readlink() == Path(WISHES):
                return True
    return False


def held_s(file: Path) -> float:
    """How long a run holds that wish, in seconds: from the first time to the last, without a gap."""
    words = command("run", file, "--engine", "live", "--allow-tainted")
    run = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    looks: list[tuple[float, bool]] = []
    while run.poll() is None:
        with suppress(OSError):
            looks.append((time.monotonic(), holding(run)))
        time.sleep(LOOK_S)
    assert run.returncode == 0
    times = [at for at, is_held in looks if is_held]
    assert times, "it never asks"
    assert all(is_held for at, is_held in looks if times[0] <= at <= times[-1]), "it lets go meanwhile"
    return times[-1] - times[0]


def test_processors_stay_awake(live_machine: None, tmp_path: Path) -> None:
    """While hosts send, and for a second after. Detects an engine that asks once, or that has no end of it."""
    if not os.access(WISHES, os.W_OK):
        missing(f"{WISHES} cannot be written")
    file = tmp_path / "run.toml"
    long = PATH.replace("3 s", "4 s") + FLOW
    file.write_text(long)
    # The run takes 4 s of real time, however busy the machine is.
    assert held_s(file) > 3
    file.write_text(long + 'workload = { kind = "file", size = "10 kB" }\n')
    assert 0.5 < held_s(file) < 3


def test_the_summary_has_the_simulators_form(late_run: Run) -> None:
    text = PATH + FLOW
    live, simulated = late_run(text), Scenario.from_text(text).run().summary
    # A run that is tainted says so.
    assert set(live) - {"tainted"} == set(simulated) | {"live"}
    assert set(live["flows"]["main"]) == set(simulated["flows"]["main"])
    assert live["resolved_scenario"] == simulated["resolved_scenario"]


@pytest.mark.brief
def test_a_tainted_run_has_no_result(live_machine: None) -> None:
    from anabranch.errors import RunFailedError
    from anabranch.live import Limits, run_audited, taint

    scenario, strict = Scenario.from_text((PATH + FLOW).replace("3 s", "500 ms")), Limits(p99_lateness_ms=0.0)
    with pytest.raises(RunFailedError, match=r"tainted and has no result: one packet in a hundred left more than"):
        scenario.run_live(limits=strict)
    assert taint(run_audited(scenario, limits=strict))
