"""``--engine kernel`` in every command, with a stand-in for the kernel that runs the simulator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anabranch import Scenario, Study, UserError
from anabranch.errors import RunFailedError
from anabranch.kernel.images import Image
from anabranch.progress import Progress
from anabranch.sweep.sweep import SweepResult
from anabranch.validate import compare
from anabranch.validate.host_times import HostTimes, in_parts_of_tick

from . import test_kernel
from .command import Call
from .study.test_live import SCENARIO, STUDY
from .test_kernel import planted

cache = test_kernel.cache
LIMIT_S = 1.0
"""The rule is 0.2 s; a busy machine may take longer. A blocked stand-in would take minutes."""
STAND_IN = Path(__file__).with_name("stand_in_kernel.py")
LOSS = 'forward.impair = [ { kind = "bernoulli-loss", rate = 0.01 } ]\n'
PATH = f"""
title = "A thin path"
duration = "1 s"
[link.path]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = {{ kind = "drop-tail", limit = "30 packets" }}
{LOSS}
[flow.main]
from = "A"
to = "B"
"""


class Kernels:
    """Stand-ins, and their runs."""

    def __init__(self, cache: Path, folder: Path) -> None:
        self._cache, self.folder = cache, folder
        self._log = folder / "log"

    def plant(self, release: str) -> Image:
        """Create a stand-in for a kernel of this release."""
        return planted(self._cache, release, f"exec {sys.executable} {STAND_IN} $job {release} {self._log}")

    def hold(self, seed: int) -> None:
        """Block runs with this seed."""
        (self.folder / f"hold-{seed}").touch()

    def release(self, seed: int) -> None:
        """Release blocked runs."""
        (self.folder / f"hold-{seed}").unlink()

    def runs(self) -> list[str]:
        """Release and seed of all runs since the last call, in order."""
        found = sorted(self._log.read_text().splitlines()) if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return found


@pytest.fixture
def kernels(cache: Path, tmp_path: Path) -> Kernels:
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    made = Kernels(cache, folder)
    made.plant("6.12.1")
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "thin.toml"
    path.write_text(PATH)
    return path


def test_a_run_uses_the_requested_kernel(anabranch: Call, kernels: Kernels, file: Path) -> None:
    kernels.plant("6.1.9")
    assert json.loads(anabranch("run", file, "--engine", "kernel", "--json").out)["engine"] == "kernel"
    assert kernels.runs() == ["6.12.1 1"]
    assert anabranch("run", file, "--engine", "kernel", "--json", "--seed", "7", "--kernel", "6.1").status == 0
    assert kernels.runs() == ["6.1.9 7"]
    # The scenario requests a kernel, and the command overrides it.
    asking = Scenario.from_file(file).set("kernel", "6.1")
    assert asking.run_kernel().summary["resolved_scenario"]["kernel"] == "6.1"
    asking.run_kernel(kernel="6.12")
    assert kernels.runs() == ["6.1.9 1", "6.12.1 1"]


def test_options_may_be_of_numpys_types(kernels: Kernels, file: Path) -> None:
    """Detects a request that confuses a number with its bytes."""
    made = Scenario.from_file(file).run_kernel(samples_ms=np.float64(20))
    times = made.plain("link_samples").numbers("time_s")
    assert np.diff(np.unique(times)).min() == pytest.approx(0.02)


def test_progress_is_the_share_of_virtual_time(
    kernels: Kernels, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    Scenario.from_file(file).run_kernel(progress=shares.append)
    assert shares == [0.5]
    monkeypatch.setattr("anabranch.progress.PATIENCE_S", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Progress("thin.toml", 10, unit="s of virtual time") as bar:
        bar.update(2.5)
    assert "2.5/10 s of virtual time" in capfd.readouterr().err


def test_a_sweep_runs_each_point_once_per_kernel(anabranch: Call, kernels: Kernels, file: Path, tmp_path: Path) -> None:
    """Detects points stored without their engine or kernel."""
    out = tmp_path / "out"
    command = ("sweep", file, "--repeat", "2", "--grid", "flow.main.cc=reno,cubic", "--out", out)
    assert anabranch(*command).status == 0
    assert anabranch(*command, "--engine", "kernel").status == 0
    assert kernels.runs() == ["6.12.1 1"] * 2 + ["6.12.1 2"] * 2
    again = anabranch(*command, "--engine", "kernel", "--json")
    assert kernels.runs() == []
    assert len(json.loads(again.out)["points"]) == 2
    kernels.plant("6.13.0")
    anabranch(*command, "--engine", "kernel")
    assert kernels.runs() == ["6.13.0 1"] * 2 + ["6.13.0 2"] * 2
    assert SweepResult.read(out).scenario.engine == "kernel"


def test_versions_run_side_by_side(kernels: Kernels, file: Path) -> None:
    kernels.plant("6.1.9")
    swept = Scenario.from_file(file).sweep({"kernel": ["6.1", "6.12"]}, engine="kernel")
    assert kernels.runs() == ["6.1.9 1", "6.12.1 1"]
    assert swept["kernel"] == ["6.1", "6.12"]


def test_seeds_of_a_sweep_run_until_an_interval_is_narrow(kernels: Kernels, file: Path) -> None:
    swept = Scenario.from_file(file).sweep(until="goodput:90%", repeat=4, engine="kernel")
    assert 2 <= len(kernels.runs()) == swept.plain.height


def test_scenarios_are_compared_in_kernels(anabranch: Call, kernels: Kernels, file: Path, tmp_path: Path) -> None:
    reno = tmp_path / "reno.toml"
    reno.write_text(f'{PATH}cc = "reno"\n')
    made = anabranch("compare", file, reno, "--engine", "kernel")
    assert made.out.count("in a Linux kernel, virtual time") == 2
    assert kernels.runs() == ["6.12.1 1"] * 2
    document = json.loads(anabranch("compare", file, reno, "--engine", "kernel", "--repeat", "2", "--json").out)
    assert [one["engine"] for one in document["inputs"]] == ["kernel", "kernel"]
    assert kernels.runs() == ["6.12.1 1"] * 2 + ["6.12.1 2"] * 2


def test_a_validation_makes_two_runs_for_each_seed_and_stores_them(
    anabranch: Call, kernels: Kernels, file: Path, tmp_path: Path
) -> None:
    keep, out = tmp_path / "keep", tmp_path / "validated"
    command = ("validate", file, "--engine", "kernel", "--seeds", "2", "--keep", keep)
    document = json.loads(anabranch(*command, "--json", "--out", out).out)
    assert kernels.runs() == ["6.12.1 1"] * 2 + ["6.12.1 2"] * 2
    (made,) = document["scenarios"]
    assert (document["engine"], made["live_runs"], made["tainted_runs"]) == ("kernel", 4, 0)
    assert made["metrics"]["goodput_mbit_s"]["relative_error"] < 0.05
    assert "4 runs in Linux 6.12.1, virtual time" in (out / "validation.md").read_text()
    anabranch(*command)
    assert kernels.runs() == []


def test_runs_of_a_validation_begin_at_different_phases_of_a_tick(kernels: Kernels) -> None:
    """Detects runs that all begin at the same phase, whose floor would be 0."""
    scenario = Scenario.from_text(PATH.replace(LOSS, ""))
    made = compare(scenario, "thin.toml", seeds=2, times=HostTimes.none(), engine="kernel")
    assert made.results["goodput_mbit_s"].error == 0.0
    assert made.results["goodput_mbit_s"].floor > 0.0
    starts = [
        run["resolved_scenario"]["flow"]["main"]["start"] for run in map(_resolved, in_parts_of_tick(scenario, 4))
    ]
    assert starts == ["0 s", "1 ms", "2 ms", "3 ms"]


def _resolved(scenario: Scenario) -> dict[str, Any]:
    return dict(scenario.resolve())


def test_a_study_judges_by_kernels_and_the_simulator(anabranch: Call, kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(SCENARIO)
    (tmp_path / "study.toml").write_text(STUDY)
    said = []
    result = Study.load(tmp_path).run_kernel(announce=lambda runs, seconds: said.append((runs, seconds)))
    assert said == [(4, 4.0)]
    assert kernels.runs() == ["6.12.1 1"] * 4
    assert [live.verdict for _, live in result.claims] == ["reproduced", "reproduced"]
    document = result.to_json()
    assert (document["engine"], document["machine"]["kernel"]) == ("kernel", "6.12.1")
    done = anabranch("study", tmp_path, "--engine", "kernel", "--out", tmp_path / "out")
    assert "4 runs in Linux 6.12.1, virtual time" in done.out
    page = (tmp_path / "out" / "report.md").read_text()
    assert f"`anabranch study {tmp_path.name} --engine kernel --kernel 6.12.1`" in page
    assert "| simulator | verdict | kernel | verdict |" in page


def test_a_study_keeps_its_finished_runs(anabranch: Call, kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(SCENARIO)
    out = tmp_path / "out"
    command = ("study", tmp_path, "--engine", "kernel", "--out", out)
    for sampled in ("", "samples = true\n"):
        changed = STUDY.replace("[live.experiment.runs]\n", f"[live.experiment.runs]\n{sampled}")
        (tmp_path / "study.toml").write_text(changed)
        anabranch(*command)
        assert kernels.runs() == ["6.12.1 1"] * 4
        first = json.loads((out / "study.json").read_text())
        anabranch(*command)
        assert kernels.runs() == []
        again = json.loads((out / "study.json").read_text())
        for document in (first, again):
            document["audit"].pop("seconds")
        assert again == first
    # Another kernel's runs are others.
    kernels.plant("6.1.9")
    anabranch(*command, "--kernel", "6.1")
    assert kernels.runs() == ["6.1.9 1"] * 4


def test_a_check_that_accepts_its_wrong_system_names_its_engine(
    anabranch: Call, kernels: Kernels, tmp_path: Path
) -> None:
    (tmp_path / "path.toml").write_text(SCENARIO)
    (tmp_path / "study.toml").write_text(STUDY.replace("1.7 <= ratio <= 2.1", "0.5 <= ratio <= 2.1"))
    done = anabranch("study", tmp_path, "--engine", "kernel")
    name = tmp_path.name
    told = "the check accepts its wrong system as well, so it proves nothing"
    assert done.status == 1
    assert f"error: {name} H1, in the simulator: {told}; {name} H1, in the kernel: {told}; " in done.err


def test_advice_is_repeated_in_a_kernel(anabranch: Call, kernels: Kernels, tmp_path: Path) -> None:
    capture = tmp_path / "slow.pcapng"
    scenario = Scenario.from_text(PATH).set("duration", "3 s").set("flow.main.transport.receive_window", "8 KiB")
    capture.write_bytes(scenario.run(captures=["path"]).pcapng("path"))
    document = json.loads(anabranch("diagnose", capture, "--advise", "--engine", "kernel", "--json").out)
    (connection,) = document["connections"]
    repeated = [row["remedy"] for row in connection["advice"] if "kernel" in row]
    assert "nothing" in repeated
    assert len(kernels.runs()) == len(repeated)


REFUSED = [
    (
        ["run", "FILE", "--kernel", "6.12"],
        "--kernel 6.12 is of --engine kernel, and --engine sim runs none\n  give --engine kernel",
    ),
    (["run", "FILE", "--engine", "kernle"], 'there is no engine "kernle"\n  did you mean "kernel"?'),
    (
        ["run", "FILE", "--engine", "kernel", "--kernel", "5.4"],
        "no kernel 5.4 is built",
    ),
    (
        ["run", "FILE", "--engine", "kernel", "--trace", "acks"],
        "--trace traces this machine's TCP, which --engine kernel does not have\n  give --engine live",
    ),
    (
        ["run", "FILE", "--engine", "kernel", "--why"],
        "--why reads a trace, and --engine kernel makes none\n  give --engine sim or live",
    ),
    (
        ["run", "FILE", "--engine", "kernel", "--allow-tainted"],
        "--allow-tainted is for live runs; runs of --engine kernel are exact\n  give --engine live",
    ),
    (["run", "FILE", "--engine", "kernel", "--set", "flow.main.cc=cubic-plus"], "an eBPF control does not run"),
    (
        ["run", "FILE", "--engine", "kernel", "--set", 'flow.main.cc={ kind = "bpf", name = "vegas" }'],
        "an eBPF control does not run in virtual time",
    ),
    (
        ["run", "FILE", "--engine", "kernel", "--set", "host.A.attach=interface:lo"],
        "a kernel in virtual time has no interface of this machine",
    ),
    (["run", "FILE", "--set", "kernel=/boot/linux"], "`/boot/linux` is no release of Linux"),
    (["sweep", "FILE", "--engine", "live"], "this command has no --engine live"),
    (
        ["sweep", "FILE", "--engine", "kernel", "--grid", "flow.main.cc=reno,cubic-plus"],
        "an eBPF control does not run in virtual time",
    ),
    (
        ["sweep", "FILE", "--engine", "kernel", "--grid", 'kernel=["6.12", "5.4"]'],
        "no kernel 5.4 is built",
    ),
    (
        ["sweep", "FILE", "--engine", "kernel", "--shard", "1/2", "--out", "DIR"],
        "--shard does not go with --engine kernel: kernels run on this machine\n  leave out --shard",
    ),
    (
        ["sweep", "FILE", "--engine", "kernel", "--ray", "local"],
        "--ray does not go with --engine kernel: kernels run on this machine\n  leave out --ray",
    ),
    (["compare", "FILE", "FILE", "--engine", "live"], "this command has no --engine live"),
    (
        ["validate", "FILE", "--engine", "kernel", "--allow-tainted"],
        "--allow-tainted is for live runs: a kernel in virtual time is never late\n  leave it out",
    ),
    (
        ["validate", "FILE", "--engine", "kernel", "--host-times", "FILE"],
        "--host-times is for live runs: a kernel in virtual time is never late\n  leave it out",
    ),
    (["validate", "FILE", "--engine", "kernel", "--set", "flow.main.cc=prague"], "an eBPF control does not run"),
    (["study", "reordering", "--engine", "kernel", "--attempts", "3"], "--attempts is for live runs"),
    (["study", "reordering", "--engine", "kernel", "--robustness"], "--robustness is the simulator's"),
    (["study", "HALF", "--engine", "kernel", "--quick"], "an eBPF control does not run in virtual time"),
    (
        ["diagnose", "FILE", "--engine", "kernel"],
        "--engine kernel repeats the best remedy of --advise, and it is not given\n  give --advise --engine kernel",
    ),
    (
        ["diagnose", "FILE", "--live", "--engine", "kernel"],
        "--live is --engine live, and --engine kernel is given\n  give one of them",
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_a_kernel_refuses_before_any_run(
    anabranch: Call, kernels: Kernels, file: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    places = {"FILE": file, "DIR": tmp_path / "out", "HALF": Path(__file__).parents[1] / "live" / "half"}
    done = anabranch(*(places.get(word, word) for word in words))
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert "= expected" in done.err or "\n  " in done.err
    assert kernels.runs() == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "FILE"],
        ["sweep", "FILE"],
        ["compare", "FILE", "OTHER"],
        ["validate", "FILE"],
        ["study", "DIR"],
    ],
)
def test_without_a_kernel_every_command_names_the_next_step(
    anabranch: Call, cache: Path, file: Path, words: list[str]
) -> None:
    other = file.with_name("other.toml")
    other.write_text(PATH)
    (file.parent / "path.toml").write_text(SCENARIO)
    (file.parent / "study.toml").write_text(STUDY)
    places = {"FILE": file, "OTHER": other, "DIR": file.parent}
    done = anabranch(*(places.get(word, word) for word in words), "--engine", "kernel")
    assert done.status == 2
    assert done.err == "error: no kernel is built that could run in virtual time\n  type: anabranch kernel build\n"


def test_a_python_control_is_refused() -> None:
    from anabranch import CongestionControl

    class Mine(CongestionControl):
        """A control that does not exist in any kernel."""

        name = "mine"

    scenario = Scenario.from_text(PATH).with_controls(Mine)
    with pytest.raises(UserError, match="a kernel runs no congestion control in Python"):
        scenario.run_kernel()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'Kernel panic - not syncing: no init'; exit 134", "panicked\n  Kernel panic - not syncing: no init"),
        ("echo 'Out of memory: Killed process 9'", "has too little memory\n  Out of memory: Killed process 9"),
        ("echo 'last words'; exit 3", "ended with status 3\n  last words"),
    ],
)
def test_a_stopped_kernel_is_one_message_of_the_command(
    anabranch: Call, cache: Path, file: Path, script: str, told: str
) -> None:
    planted(cache, "6.12.1", script)
    for command in (["run"], ["sweep", "--repeat", "2"]):
        done = anabranch(command[0], file, *command[1:], "--engine", "kernel")
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(f"error: the kernel 6.12.1 {told}\n")


def test_a_sweep_keeps_points_finished_before_a_kernel_stopped(
    kernels: Kernels, cache: Path, file: Path, tmp_path: Path
) -> None:
    scenario, out = Scenario.from_file(file), tmp_path / "out"
    scenario.sweep(repeat=1, engine="kernel", out=out)
    log = kernels.folder / "log"
    linux = cache / "6.12.1-0123" / "linux"
    right = linux.read_text()
    linux.write_text("#!/bin/sh\nexit 7\n")
    with pytest.raises(RunFailedError, match="ended with status 7"):
        scenario.sweep(repeat=2, engine="kernel", out=out)
    log.unlink()
    linux.write_text(right)
    scenario.sweep(repeat=2, engine="kernel", out=out)
    assert kernels.runs() == ["6.12.1 2"]


def started(folder: Path, *words: object) -> subprocess.Popen[str]:
    """Start a command whose temporary files are in ``folder``."""
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", *map(str, words), "--engine", "kernel"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def guests_of(folder: Path) -> list[int]:
    """Processes that were started with a folder in ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes() or str(folder) in os.readlink(
                process / "cwd"
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def has_ended(process: int, within_s: float = 0.5) -> bool:
    """Whether a process ends within a time. Its parent may not have waited for it yet."""
    state, until = Path("/proc", str(process), "stat"), time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.005)
    return False


def wait_for(is_there: object, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while not is_there():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [["run"], ["sweep", "--repeat", "3", "--jobs", "2"]])
def test_a_signal_ends_command_and_guests(
    kernels: Kernels, file: Path, tmp_path: Path, words: list[str], number: signal.Signals
) -> None:
    """Detects a command that waits for its guests, and guests that outlive it."""
    for seed in (1, 2, 3):
        kernels.hold(seed)
    folder = tmp_path / "temporary"
    process = started(folder, words[0], file, *words[1:])
    expected = 2 if words[0] == "sweep" else 1
    log = kernels.folder / "log"
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) == expected)
    guests = guests_of(folder)
    assert len(guests) >= expected
    began = time.monotonic()
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert time.monotonic() - began < LIMIT_S
    assert process.returncode == 128 + number
    assert told.endswith("error: interrupted\n" if number == signal.SIGINT else "error: terminated\n")
    assert all(has_ended(guest) for guest in guests)
    assert list(folder.iterdir()) == []


def test_an_interrupted_sweep_resumes(kernels: Kernels, file: Path, tmp_path: Path) -> None:
    kernels.hold(3)
    command = ("sweep", file, "--repeat", "3", "--jobs", "1", "--out", tmp_path / "out")
    process = started(tmp_path / "temporary", *command)
    log = kernels.folder / "log"
    wait_for(lambda: log.exists() and "6.12.1 3" in log.read_text())
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert "the same command goes on from there" in told
    assert kernels.runs() == ["6.12.1 1", "6.12.1 2", "6.12.1 3"]
    kernels.release(3)
    process = started(tmp_path / "temporary", *command)
    assert process.communicate(timeout=60)[1].startswith("wrote ")
    assert kernels.runs() == ["6.12.1 3"]


def test_a_guest_ends_with_its_killed_owner(kernels: Kernels, file: Path, tmp_path: Path) -> None:
    """Detects guests that only their owner ends, which is impossible after a kill."""
    kernels.hold(1)
    folder = tmp_path / "temporary"
    process = started(folder, "run", file)
    wait_for((kernels.folder / "log").exists)
    guests = guests_of(folder)
    process.kill()
    process.communicate(timeout=30)
    assert all(has_ended(guest, 5.0) for guest in guests)
    wait_for(lambda: list(folder.iterdir()) == [], 5.0)
