"""One scenario file, real packets: invariants of every live run."""

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
def test_link_counters_also_conserve_packets(late_run: Run) -> None:
    """The engine's account (`live.packets`) does not use these counters. There are no duplicates and no warm-up."""
    lossy = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]\nforward.queue'
    summary = late_run(PATH.replace("forward.queue", lossy) + FLOW + 'workload = { kind = "file", size = "3 MB" }\n')
    packets, audit = summary["live"]["packets"], summary["live"]["audit"]
    directions = [both[name] for both in summary["links"].values() for name in ("forward", "reverse")]
    dropped, lost = (sum(one[key] for one in directions) for key in ("dropped_packets", "lost_packets"))
    assert (dropped, lost) == (packets["dropped_packets"], packets["lost_packets"])
    assert lost > 10
    assert audit["taken_packets"] == audit["released_packets"] + dropped + lost + audit["in_flight_packets"]
    assert audit["foreign_packets"] == 0
    # The kernels' counters of their devices, which include packets sent after the last sample.
    assert packets["kernel_sent"] >= audit["taken_packets"] > 1000
    assert packets["kernel_received"] == audit["released_packets"]


def test_the_machine_is_described(late_run: Run) -> None:
    """Offloads that merge packets are off, as read from the devices."""
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
    """Whether this run holds its request that no processor sleeps; the file combines the requests of all processes."""
    for descriptor in Path(f"/proc/{run.pid}/fd").iterdir():
        with suppress(OSError):
            if descriptor.readlink() == Path(WISHES):
                return True
    return False


def held_s(file: Path) -> float:
    """Duration of that request in seconds, from the first sample to the last, without a gap."""
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
    """The request lasts while hosts send, and for a second after. Detects an engine that requests once, or for ever."""
    if not os.access(WISHES, os.W_OK):
        missing(f"{WISHES} cannot be written")
    file = tmp_path / "run.toml"
    long = PATH.replace("3 s", "4 s") + FLOW
    file.write_text(long)
    # The run takes 4 s of real time on any machine.
    assert held_s(file) > 3
    file.write_text(long + 'workload = { kind = "file", size = "10 kB" }\n')
    assert 0.5 < held_s(file) < 3


def test_the_summary_has_the_simulators_form(late_run: Run) -> None:
    text = PATH + FLOW
    live, simulated = late_run(text), Scenario.from_text(text).run().summary
    # A tainted run has an additional key.
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
