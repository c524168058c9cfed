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
def test_a_bulk_flow_fills_the_path(live_run: Run) -> None:
    """At most the link's share of payload, and after slow start little less."""
    summary = live_run(PATH + FLOW + 'cc = "cubic"\n')
    flow, link = summary["flows"]["main"], summary["links"]["path"]["forward"]
    assert 0.9 * 20 * 1448 / 1500 < flow["goodput_mbit_s"] < 20 * 1448 / 1500
    assert flow["min_rtt_ms"] >= 20
    assert flow["mean_srtt_ms"] <= 20 + 20 + 2  # the queue holds as much again
    assert flow["sent_packets"] >= flow["delivered_bytes"] / 1448
    assert link["dropped_packets"] <= flow["retransmitted_packets"] + flow["mean_cwnd_packets"] * 2
    assert (summary["engine"], summary["digest"]) == ("live", None)
    assert summary["live"]["machine"]["kernel_settings"]["net/ipv4/tcp_no_metrics_save"] == "1"


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
    """While hosts send, and for a second after. Fails for an engine that asks once, or that has no end of it."""
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


@pytest.mark.brief
@pytest.mark.parametrize(
    ("extra", "place", "message"),
    [
        ('stack = "rfc"', "14:9", 'a live host runs this machine\'s kernel, not the stack "rfc"'),
        ('cc = "no-such"', "14:6", "unknown congestion control `no-such`"),
        ('cc = "bbr3"', "14:6", "this machine's kernel does not let a socket have the congestion control `bbr3`"),
        ('cc = { kind = "cubic", beta = 0.5 }', "14:6", "a socket can only name its congestion control"),
        ('transport = { min_rto = "1 s" }', "14:25", "`min_rto` cannot be set for a socket of this machine's kernel"),
        ('fec = { kind = "xor" }', "14:7", "whose TCP has no error correction"),
        ('protocol = "udp"\nfamily = 6\nworkload = { kind = "paced", rate = "1 Mbit/s", payload = "65500 bytes" }',
         "16:12", "a packet of 65548 bytes with its headers is more than a device carries"),
        ('[group.other]\nbetween = ["A", "C"]\nmembers = 2\nrate = "10 Mbit/s"\ncontrol = "oracle"', "18:11",
         "a live run cannot know beforehand what will arrive, which `oracle` needs"),
        ('[host.A]\nattach = "eth0"', "15:10", "there is nothing like `eth0` to attach a host to"),
        ('[host.A]\nexec = []', "15:8", "`exec` is no program and its arguments"),
    ],
)  # fmt: skip
def test_what_cannot_run_live(live_machine: None, tmp_path: Path, extra: str, place: str, message: str) -> None:
    import subprocess

    from .conftest import command

    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW + extra + "\n")
    done = subprocess.run(command("run", file, "--engine", "live"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {file}:{place}: ")
    assert message in done.stderr.splitlines()[0]


@pytest.mark.brief
def test_the_simulator_refuses_what_is_live_only(tmp_path: Path) -> None:
    from anabranch._engine import ScenarioError

    with pytest.raises(ScenarioError, match="something that only the live engine has"):
        Scenario.from_text(PATH + FLOW + "family = 6\n").run()
