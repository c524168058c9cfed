"""Studies in the live engine, and the eBPF controls that their runs load."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import ATTEMPTS, Run, available, command, own_controls

PATH = """
title = "a path"
duration = "2 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
forward.queue = { kind = "drop-tail", limit = "1 bdp" }

[flow.main]
from = "A"
to = "B"
"""

HALF = Path(__file__).parent / "half"
"""A study of two claims, which a live run reproduces."""
STUDY = (HALF / "study.toml").read_text()


def test_a_run_loads_and_unloads_a_control(can_load: None, late_run: Run) -> None:
    """Detects a run that sends with another control, or leaves its control in the kernel."""
    summary = late_run(PATH + 'cc = "compound"\n')
    told = summary["live"]["controls"]["main"]
    assert told["name"].startswith("ab_compou")
    assert (told["file"], told["loaded"]) == ("compound.bpf.c", True)
    assert summary["flows"]["main"]["goodput_mbit_s"] > 0
    assert has_gone(told["name"])
    assert summary["flows"]["main"]["goodput_mbit_s"] < 20 * 1448 / 1500


def test_a_file_beside_the_scenario_is_loaded(can_load: None, late_run: Run, tmp_path: Path) -> None:
    """The name in the kernel shows that the file's control was used."""
    checkout = Path(__file__).resolve().parents[2]
    text = (checkout / "bpf" / "cc" / "reno.bpf.c").read_text()
    name = '"ab_reno"'
    assert name in text
    (tmp_path / "mine.bpf.c").write_text(text.replace(name, '"mine"'))
    summary = late_run(PATH + 'cc = { kind = "bpf", file = "mine.bpf.c" }\n')
    told = summary["live"]["controls"]["main"]
    assert told["name"].startswith("mine_")
    assert told["file"].endswith("mine.bpf.c")


def start(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", file, "--engine", "live", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def loaded(process: subprocess.Popen[str]) -> str:
    """The control that a run has loaded, after it has done so: its name ends in the number of the process."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for name in own_controls(process.pid):
            return name
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"nothing was loaded: {process.communicate()[1]}")


def has_gone(name: str) -> bool:
    """Whether a control leaves the kernel, which removes it after its last user."""
    deadline = time.monotonic() + 30
    while name in available() and time.monotonic() < deadline:
        time.sleep(0.05)
    return name not in available()


def test_simultaneous_runs_have_separate_copies_and_kill_leaves_none(can_load: None, tmp_path: Path) -> None:
    """Detects copies that share a name, and controls that outlive ``kill -9``."""
    file = tmp_path / "long.toml"
    file.write_text(PATH.replace("2 s", "30 s") + 'cc = "cubic-plus"\n')
    runs = [start(file)]
    try:
        first = loaded(runs[0])
        runs.append(start(file))
        second = loaded(runs[1])
        assert first != second
        os.kill(runs[0].pid, signal.SIGKILL)
        runs[0].wait(timeout=30)
        assert has_gone(first)
        assert second in available()
        assert runs[1].poll() is None
    finally:
        for run in runs:
            if run.poll() is None:
                run.kill()
            run.communicate()
    assert has_gone(second)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('cc = { kind = "bpf", file = "absent.bpf.c" }', ["absent.bpf.c", "scenario.toml:14:"]),
        ('cc = { kind = "bpf", file = "broken.bpf.c" }', ["broken.bpf.c", "scenario.toml:14:"]),
        ('transport = { receive_window = "10 packets" }', ["scenario.toml:14:", "receive_autotuning"]),
        ('transport = { min_rto = "1 s" }', ["scenario.toml:14:", "min_rto", "frto"]),
    ],
)
def test_unusable_controls_are_refused(live_machine: None, tmp_path: Path, line: str, told: list[str]) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + line + "\n")
    (tmp_path / "broken.bpf.c").write_text("this is no C\n")
    done = subprocess.run(command("run", file, "--engine", "live"), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    for part in told:
        assert part in done.stderr
    assert done.stdout == ""


@pytest.mark.brief
def test_a_missing_requirement_is_named(live_machine: None, tmp_path: Path) -> None:
    """Detects a run whose message is only that the kernel has no such control."""
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + 'cc = "cubic-plus"\n')
    no_compiler = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        command("run", file, "--engine", "live"), env=no_compiler, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "scenario.toml:14:6:" in done.stderr
    assert "cannot be given `cubic-plus.bpf.c`" in done.stderr
    # The first requirement checked depends on machine and build; each message has a remedy.
    assert any(what in done.stderr for what in ("`clang`", "/sys/kernel/btf/vmlinux", "libelf-dev"))


def write(directory: Path, study: str) -> Path:
    shutil.copytree(HALF, directory)
    (directory / "study.toml").write_text(study)
    return directory


def test_a_study_is_judged_by_both_engines(can_load: None, tmp_path: Path) -> None:
    """Four short runs; on the wrong system, with a single rate, the live check must also fail."""
    directory = write(tmp_path / "half", STUDY)
    for attempt in range(ATTEMPTS):
        out = tmp_path / f"out-{attempt}"
        done = subprocess.run(
            command("study", directory, "--engine", "live", "--attempts", "4", "--json", "--out", out),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.stdout, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        audit = document["audit"]
        assert (done.returncode == 1) == (audit["tainted"] > 0.1 * audit["runs"]), done.stderr
        assert audit["runs"] - audit["tainted"] == 4 - audit["without_result"]
        if not audit["without_result"]:
            break
    else:
        pytest.fail(f"{ATTEMPTS} studies, none whole")
    assert [claim["id"] for claim in document["claims"]] == ["H1", "S1"]
    for claim in document["claims"]:
        for engine in ("simulator", "live"):
            assert claim[engine]["verdict"] == "reproduced", claim
            assert claim[engine]["control"] == "not reproduced", claim
        assert claim["live"]["measures"] != claim["simulator"]["measures"]
    assert (out / "report.md").read_text().count("H1") == 1


def test_requirements_of_all_studies_are_checked_before_the_first_run(live_machine: None, tmp_path: Path) -> None:
    """Detects studies that are checked individually: the first would be run."""
    cubic = STUDY.replace("cubic-plus", "cubic")
    first = write(tmp_path / "first", cubic)
    second = write(tmp_path / "second", STUDY)
    done = subprocess.run(
        command("study", first, second, "--engine", "live"),
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be given `cubic-plus.bpf.c`" in done.stderr
    assert "live runs one after the other" not in done.stderr
