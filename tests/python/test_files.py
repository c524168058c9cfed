"""Files named by a scenario or a command: accepted files, refusals, and termination of reads."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.files import files
from anabranch.files.files import NoSuchFileError, content_hash, read_bytes, read_head

PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")


def test_a_regular_file_is_read_through_a_symbolic_link(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9_000
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "link").symlink_to("x")
    assert read_bytes(tmp_path / "link", most=len(content)) == content
    assert read_head(tmp_path / "x", 3) == b"\0\1\2"
    assert content_hash(tmp_path / "x") == content_hash(str(tmp_path / "link"))
    (tmp_path / "x").write_bytes(content[:-1])
    assert content_hash(tmp_path / "x") != content_hash(__file__)


def test_a_file_is_read_within_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    with pytest.raises(UserError, match="has 5 bytes; at most 4 were expected"):
        read_bytes(path, most=4)
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(UserError, match="1,099,511,627,776 bytes"):
        read_bytes(path, most=files.MAX_TEXT_BYTES)


def test_a_false_size_does_not_lift_the_bound() -> None:
    assert os.stat("/proc/self/pagemap").st_size == 0
    with pytest.raises(UserError, match="more than 100 bytes"):
        read_bytes("/proc/self/pagemap", most=100)


@pytest.mark.parametrize(("path", "kind"), [("/dev/zero", "a device"), ("/", "a directory"), ("/dev/tty", "a device")])
def test_devices_and_directories_are_refused(path: str, kind: str) -> None:
    with pytest.raises(UserError, match=f"is {kind}; a regular file was expected"):
        read_bytes(path, most=10)


def test_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is a pipe"):
        read_bytes(tmp_path / "pipe", most=10)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(UserError, match="is a socket"):
            read_bytes(tmp_path / "socket", most=10)


def test_a_pipe_that_replaces_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is replaced between the check and opening."""
    path = tmp_path / "x"
    path.write_bytes(b"1")
    real = os.open

    def replaced(*arguments: object) -> int:
        path.unlink()
        os.mkfifo(path)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(UserError, match="is a pipe"):
        read_bytes(path, most=10)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may open it")
def test_a_file_that_waits_for_events_is_refused() -> None:
    # Opening the file does not consume messages, and reading stops at the first one not available
    # yet.
    with pytest.raises(UserError, match=r"waits for events|more than|not permitted"):
        read_bytes("/proc/kmsg", most=1)


def test_broken_names(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UserError, match="circle"):
        read_bytes(tmp_path / "a", most=10)
    with pytest.raises(NoSuchFileError, match="no such file"):
        read_bytes(tmp_path / "none", most=10)
    with pytest.raises(UserError, match="cannot be a file's name"):
        read_bytes("a\0b", most=10)
    with pytest.raises(UserError, match="Not a directory"):
        read_bytes(Path(__file__) / "x", most=10)


CASES = [
    (PCAP, "is a packet capture (pcap); a scenario (TOML) was expected", 'workload = { kind = "replay", file = "x" }'),
    (PCAP[3::-1] + PCAP[4:], "is a packet capture (pcap)", "replay"),
    (bytes.fromhex("0a0d0d0a1c000000"), "is a packet capture (pcapng)", "replay"),
    (gzip.compress(PCAP), "is a packet capture (pcap, gzip)", "replay"),
    (gzip.compress(b"duration = 1"), "compressed with gzip", "decompress"),
    (bytes.fromhex("28b52ffd00000000"), "compressed with zstd", "decompress"),
    ("duration = '1 s'".encode("utf-16"), "is UTF-16 text", "UTF-8"),
    ("duration = '1 s'".encode("utf-16-le"), "is UTF-16 text", "UTF-8"),
    (b"<!DOCTYPE html>\n<html></html>", "is an HTML page", "report"),
    (b'{"title": "x"}', "is a JSON file", "resolved_scenario"),
    (b"\x7fELF\2\1\1\0", "is a program", ""),
    (b"duration\0", "is a binary file", ""),
]


@pytest.mark.parametrize(("content", "said", "hint"), CASES, ids=[said for _, said, _ in CASES])
def test_content_other_than_a_scenario_is_named(tmp_path: Path, content: bytes, said: str, hint: str) -> None:
    from anabranch import Scenario

    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError) as refused:
        Scenario.from_file(tmp_path / "x")
    assert said in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_directory_names_the_command_for_it(tmp_path: Path) -> None:
    from anabranch import Scenario
    from anabranch.files.output import write_manifest

    for name, hint in (("results", "results of a run"), ("study", "anabranch study"), ("files", "it has a.toml")):
        (tmp_path / name).mkdir()
        if name == "results":
            write_manifest(tmp_path / name, "run", [])
        else:
            (tmp_path / name / ("study.toml" if name == "study" else "a.toml")).write_text("")
        with pytest.raises(UserError, match="is a directory") as refused:
            Scenario.from_file(tmp_path / name)
        assert hint in (refused.value.hint or "")


@pytest.mark.parametrize("named", ["scenario", "side file"])
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
def test_no_command_blocks_on_a_special_file(tmp_path: Path, named: str, kind: str) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    bad = fifo if kind == "fifo" else Path(kind)
    scenario = tmp_path / "x.toml"
    scenario.write_text(
        'duration = "1 s"\n[link.a]\nbetween = ["A", "B"]\ndelay = "1 ms"\n'
        f'impair = [{{ kind = "loss-list", file = "{bad}" }}]\n[flow.main]\nfrom = "A"\nto = "B"\n'
    )
    command = [sys.executable, "-m", "anabranch", "run", str(bad if named == "scenario" else scenario)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own program
    assert done.returncode == 2
    assert "a regular file was expected" in done.stderr


def test_reading_is_interrupted(tmp_path: Path) -> None:
    """A file of 900 MiB is read in chunks: the signal is handled between two of them."""
    with (tmp_path / "x").open("wb") as sparse:
        sparse.truncate(900 << 20)

    class InterruptedReadError(Exception):
        pass

    def stop(*_: object) -> None:
        raise InterruptedReadError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(InterruptedReadError):
            content_hash(tmp_path / "x")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
