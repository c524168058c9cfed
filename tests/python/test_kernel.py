"""Kernels in virtual time: which one is used, what is said where none is, and what a stand-in for one leaves."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from anabranch.errors import RunFailedError, UserError
from anabranch.kernel import build, images
from anabranch.kernel.images import Image
from anabranch.kernel.machine import Job

from .command import Call


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(images.VARIABLE, raising=False)
    folder = tmp_path / "anabranch" / "kernels"
    folder.mkdir(parents=True)
    return folder


def planted(cache: Path, release: str, script: str = "exit 0") -> Image:
    """An image whose kernel is a shell script: its arguments are the kernel's command line."""
    folder = cache / f"{release}-0123"
    folder.mkdir()
    linux = folder / images.LINUX
    linux.write_text(f"#!/bin/sh\nfor word; do case $word in job=*) job=${{word#job=}} ;; esac; done\n{script}\n")
    (folder / images.INIT).write_text("#!/bin/sh\n")
    for path in (linux, folder / images.INIT):
        path.chmod(0o755)
    facts = {"release": release, "recipe": "0123", "source": "a tree"}
    (folder / images.FACTS).write_text(json.dumps(facts))
    image = images.read(folder)
    assert image is not None
    return image


def test_the_newest_kernel_is_used_unless_another_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = planted(cache, "6.1.99"), planted(cache, "6.12.1")
    assert images.images() == [new, old]
    assert images.chosen() == new
    assert images.chosen("6.1") == old
    assert images.chosen(str(old.folder)) == old
    monkeypatch.setenv(images.VARIABLE, "6.1")
    assert images.chosen() == old
    assert images.chosen("6.12.1") == new


def has_ended(process: int, within_s: float = 0.2) -> bool:
    """Whether a process has ended, or does within a time. Its parent may not have waited for it yet."""
    state, until = Path("/proc", str(process), "stat"), time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.005)
    return False


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("6.12", "no kernel 6.12 is built\n  type: anabranch kernel build 6.12"),
        (None, "no kernel is built that could run in virtual time\n  type: anabranch kernel build"),
        ("/nowhere/linux", "/nowhere/linux is no kernel that `anabranch kernel build` has made"),
    ],
)
def test_a_kernel_that_is_not_there_is_said_with_what_to_type(cache: Path, wish: str | None, message: str) -> None:
    with pytest.raises(UserError) as refused:
        images.chosen(wish)
    assert str(refused.value) == message


def test_a_folder_that_a_build_left_half_done_is_no_kernel(cache: Path) -> None:
    image = planted(cache, "6.12.1")
    image.init.unlink()
    assert images.images() == []


def test_a_job_leaves_status_and_output(cache: Path) -> None:
    image = planted(cache, "6.12.1", 'sh "$job/command" >"$job/out" 2>"$job/err"; echo $? >"$job/status"')
    shares: list[float] = []
    with Job() as job:
        ended = job.run(image, ["sh", "-c", "echo 'one two'; echo wrong >&2; exit 3"], progress=shares.append)
        folder = job.folder
    assert (ended.status, ended.out, ended.err) == (3, "one two\n", "wrong\n")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Kernel panic - not syncing: no init'; exit 134", "panicked\n  Kernel panic - not syncing: no init"),
        ("echo 'Out of memory: Killed process 9'; exit 0", "has too little memory\n  Out of memory: Killed process 9"),
        ("exit 7", "ended with status 7"),
    ],
)
def test_a_kernel_that_stops_is_one_message_with_its_console(cache: Path, script: str, message: str) -> None:
    with Job() as job, pytest.raises(RunFailedError) as failed:
        job.run(planted(cache, "6.12.1", script), ["true"])
    assert str(failed.value) == f"the kernel 6.12.1 {message}"


def test_a_guest_without_progress_is_ended_with_its_processes(cache: Path, tmp_path: Path) -> None:
    image = planted(cache, "6.12.1", f"sleep 60 & echo $! >{tmp_path}/process; wait")
    began = time.monotonic()
    with Job() as job, pytest.raises(RunFailedError, match="no progress in 0 s: virtual time stands still"):
        job.run(image, ["true"], silence_s=0.3)
    assert time.monotonic() - began < 10
    assert has_ended(int((tmp_path / "process").read_text()))


def test_a_source_that_is_none_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it has no arch/um"):
        build.build(str(tmp_path))
    with pytest.raises(UserError, match="there is no /nowhere/tree"):
        build.build("/nowhere/tree")


RUN = """
title = "A thin path"
duration = "3 s"
[link.path]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "30 packets" }
[flow.main]
from = "A"
to = "B"
"""


@pytest.mark.skipif(not images.images(), reason="no kernel is built: anabranch kernel build")
def test_two_runs_in_a_kernel_are_equal_and_near_the_simulator(anabranch: Call, tmp_path: Path) -> None:
    """Fails for a guest whose clock is the host's: its figures differ from run to run."""
    file = tmp_path / "thin.toml"
    file.write_text(RUN)
    runs = [json.loads(anabranch("run", file, "--engine", "kernel", "--json").out) for _ in range(2)]
    assert runs[0]["engine"] == "kernel"
    assert runs[0]["flows"] == runs[1]["flows"]
    assert runs[0]["links"] == runs[1]["links"]
    simulated = json.loads(anabranch("run", file, "--json").out)
    ours, theirs = (run["flows"]["main"]["goodput_mbit_s"] for run in (simulated, runs[0]))
    assert abs(ours - theirs) < 0.02 * ours


def test_the_recipe_changes_with_the_first_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = build.recipe()
    other = tmp_path / "init.c"
    other.write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(build, "_INIT_SOURCE", other)
    assert build.recipe() != before
