"""Actions that `--untrusted` forbids to a scenario, each refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Call

TEXT = """duration = "0.2 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "10 ms"
impair = [{{ kind = "loss-list", file = {file} }}]
[flow.m]
from = "S"
to = "R"
stack = "rfc"
{more}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "loss.txt").write_text("3\n")
    (tmp_path / "secret.txt").write_text("4\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "inside.txt").symlink_to("deep/loss.txt")
    (folder / "up").symlink_to(tmp_path)
    return folder


def write(folder: Path, file: str, more: str = "") -> Path:
    scenario = folder / "s.toml"
    scenario.write_text(TEXT.format(file=f'"{file}"', more=more))
    return scenario


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("file", ["deep/loss.txt", "deep/../deep/loss.txt", "inside.txt"])
def test_files_of_the_folder_are_read(anabranch: Call, folder: Path, command: str, file: str) -> None:
    done = anabranch(command, write(folder, file), "--untrusted")
    assert done.status == 0, done.err


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    "file", ["../secret.txt", "link.txt", "up/secret.txt", "deep/../../secret.txt", "/etc/hostname"]
)
def test_files_outside_the_folder_are_refused(anabranch: Call, folder: Path, command: str, file: str) -> None:
    scenario = write(folder, file)
    done = anabranch(command, scenario, "--untrusted")
    assert (done.status, done.out) == (2, "")
    assert f"{scenario}:6:" in done.err
    assert "outside the scenario's folder" in done.err


def test_the_folder_may_be_the_current_one(anabranch: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    write(folder, "deep/loss.txt")
    assert anabranch("run", "s.toml", "--untrusted").status == 0
    write(folder, "../secret.txt")
    assert anabranch("run", "s.toml", "--untrusted").status == 2


@pytest.mark.parametrize("more", ['cc = { kind = "bpf", file = "x.c" }', 'cc = { kind = "bpf", name = "reno" }'])
def test_programs_for_the_kernel_are_refused(anabranch: Call, folder: Path, more: str) -> None:
    (folder / "x.c").write_text('#include "/etc/passwd"\n')
    scenario = write(folder, "deep/loss.txt", more)
    done = anabranch("run", scenario, "--untrusted")
    assert (done.status, done.out) == (2, "")
    assert f"{scenario}:11:" in done.err
    assert "--untrusted refuses" in done.err


@pytest.mark.parametrize("key", ['exec = ["id"]', 'attach = "interface:lo"'])
def test_programs_and_interfaces_of_the_machine_are_refused(anabranch: Call, folder: Path, key: str) -> None:
    scenario = write(folder, "deep/loss.txt", f"[host.S]\n{key}")
    done = anabranch("run", scenario, "--untrusted")
    assert (done.status, done.out) == (2, "")
    assert f"{scenario}:12:" in done.err
    assert "--untrusted refuses" in done.err


def test_a_sweep_may_not_leave_the_folder(anabranch: Call, folder: Path) -> None:
    more = '[sweep]\n"link.a.impair.0.file" = ["deep/loss.txt", "../secret.txt"]'
    done = anabranch("sweep", write(folder, "deep/loss.txt", more), "--untrusted")
    assert done.status == 2
    assert "outside the scenario's folder" in done.err
