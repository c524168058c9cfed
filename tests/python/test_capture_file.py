"""Targets of --pcap: written files, and files that stay unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.files.capture_file import capture_files

from .command import Call

PCAPNG = b"\x0a\x0d\x0d\x0a"
ONE_SECOND = ("--set", "duration='1 s'")


@pytest.fixture
def scenario(tmp_path: Path, scenario_file: Path) -> Path:
    copy = tmp_path / "scenario.toml"
    copy.write_bytes(scenario_file.read_bytes())
    return copy


def test_the_scenario_is_not_replaced(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    before = scenario.read_bytes()
    (tmp_path / "link.toml").symlink_to(scenario)
    os.link(scenario, tmp_path / "hard.toml")
    (tmp_path / "sub").mkdir()
    for spelling in (scenario, tmp_path / "link.toml", tmp_path / "hard.toml", tmp_path / "sub" / ".." / scenario.name):
        done = anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={spelling}")
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(
            f"error: --pcap 'bottleneck={spelling}': {spelling} is {scenario}, which this run reads"
        )
        assert scenario.read_bytes() == before


def test_a_file_that_the_scenario_names_is_not_replaced(anabranch: Call, tmp_path: Path) -> None:
    recording = tmp_path / "recording.pcapng"
    text = """
        duration = "1 s"
        link.path = { between = ["A", "B"], rate = "10 Mbit/s", delay = "5 ms" }
        flow.main = { from = "A", to = "B" }
    """
    (tmp_path / "record.toml").write_text(text)
    assert anabranch("run", tmp_path / "record.toml", "--pcap", f"path.forward={recording}").status == 0
    replay = '{ kind = "replay", file = "recording.pcapng" }'
    (tmp_path / "replay.toml").write_text(text.replace('to = "B"', f'to = "B", protocol = "udp", workload = {replay}'))
    before = recording.read_bytes()
    done = anabranch("run", tmp_path / "replay.toml", "--pcap", f"path={recording}")
    assert done.status == 2
    assert "which this run reads" in done.err
    assert recording.read_bytes() == before


def test_a_foreign_file_is_not_replaced(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    (tmp_path / "directory").mkdir()
    for name, problem in (
        ("thesis.tex", "exists and was not made by anabranch; it is left as it is"),
        ("directory", "is a directory; a file was expected"),
        ("nowhere/tap.pcapng", f"the directory {tmp_path / 'nowhere'} does not exist"),
        ("thesis.tex/tap.pcapng", "cannot be written: Not a directory"),
    ):
        done = anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={tmp_path / name}")
        assert (done.status, done.out) == (2, "")
        assert problem in done.err
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_a_capture_and_an_empty_file_are_replaced(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    tap = tmp_path / "tap.pcapng"
    tap.touch()
    sizes = []
    for duration in ("1 s", "2 s"):
        done = anabranch("run", scenario, "--set", f"duration='{duration}'", "--pcap", f"bottleneck={tap}")
        assert done.status == 0
        assert tap.read_bytes().startswith(PCAPNG)
        sizes.append(tap.stat().st_size)
    assert sizes[0] < sizes[1]


def test_a_symbolic_link_is_followed(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "tap.pcapng"
    link.symlink_to(tmp_path / "there" / "real.pcapng")
    assert anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={link}").status == 0
    assert link.is_symlink()
    assert (tmp_path / "there" / "real.pcapng").read_bytes().startswith(PCAPNG)


def test_a_fifo_is_written_in_place(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    done = anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={fifo}")
    reader.join()
    assert done.status == 0
    assert fifo.is_fifo()
    anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={tmp_path / 'tap.pcapng'}")
    assert read == [(tmp_path / "tap.pcapng").read_bytes()]


def test_a_reader_may_close_its_pipe(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def look() -> None:
        with fifo.open("rb") as stream:
            stream.read(4)

    reader = threading.Thread(target=look)
    reader.start()
    # The content exceeds the capacity of a pipe, so that the writer notices.
    done = anabranch("run", scenario, "--pcap", f"bottleneck={fifo}")
    reader.join()
    assert done.status == 0
    assert f"wrote {fifo} until its reader went away" in done.err
    assert "goodput" in done.out


def test_the_null_device_remains(anabranch: Call, scenario: Path) -> None:
    assert anabranch("run", scenario, *ONE_SECOND, "--pcap", f"bottleneck={os.devnull}").status == 0
    assert Path(os.devnull).is_char_device()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system has no /proc")
def test_standard_output_has_only_the_capture(scenario: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), *ONE_SECOND]
    command += ["--pcap", "bottleneck=/proc/self/fd/1"]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own command
    assert done.stdout.startswith(PCAPNG)
    assert b"goodput" not in done.stdout
    assert b"goodput" in done.stderr
    both = subprocess.run([*command, "--json"], capture_output=True, check=False)  # noqa: S603 - our own command
    assert (both.returncode, both.stdout) == (2, b"")
    assert b"both write standard output" in both.stderr


def test_no_two_captures_in_one_file(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    one = tmp_path / "one.pcapng"
    (tmp_path / "link.pcapng").symlink_to(one)
    (tmp_path / "sub").mkdir()
    for other in (one, tmp_path / "link.pcapng", tmp_path / "sub" / ".." / "one.pcapng"):
        done = anabranch(
            "run", scenario, *ONE_SECOND, "--pcap", f"bottleneck.forward={one}", "--pcap", f"bottleneck.reverse={other}"
        )
        assert (done.status, done.out) == (2, "")
        assert f"--pcap bottleneck.forward={one} writes the same file" in done.err
        assert not one.exists()


def test_a_capture_is_stored_with_its_run(anabranch: Call, tmp_path: Path, scenario: Path) -> None:
    out = tmp_path / "out"
    arguments = ("run", scenario, *ONE_SECOND, "--out", out, "--pcap", f"bottleneck={out / 'taps' / 'tap.pcapng'}")
    for _ in range(2):
        assert anabranch(*arguments).status == 0
        assert (out / "taps" / "tap.pcapng").read_bytes().startswith(PCAPNG)
        assert (out / "summary.json").exists()


@pytest.mark.parametrize("name", ["summary.json", "packets.parquet", "figures/tap.pcapng", ""])
def test_a_capture_does_not_replace_results(anabranch: Call, tmp_path: Path, scenario: Path, name: str) -> None:
    done = anabranch(
        "run", scenario, *ONE_SECOND, "--out", tmp_path / "out", "--pcap", f"bottleneck={tmp_path / 'out' / name}"
    )
    assert (done.status, done.out) == (2, "")
    assert not (tmp_path / "out").exists()


def test_unwritable_targets_are_named(tmp_path: Path, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere/.tap.pcapng.123")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    with pytest.raises(UserError) as refused:
        capture_files([f"bottleneck={tmp_path / 'tap.pcapng'}"], [scenario], None)
    assert str(refused.value).endswith(f"{tmp_path / 'tap.pcapng'} cannot be written: Permission denied")
