"""Closed, full and broken standard streams, and arguments that are not text, give no traceback."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and shell redirections")


def shell(line: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    command = f"{shlex.quote(sys.executable)} -m anabranch {line}"
    return subprocess.run(["/bin/sh", "-c", command], cwd=directory, capture_output=True, check=False)  # noqa: S603 - ours


@pytest.fixture
def directory(tmp_path: Path, scenario_file: Path) -> Path:
    (tmp_path / "s.toml").write_text(scenario_file.read_text())
    return tmp_path


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_discarded(directory: Path, closed: str) -> None:
    done = shell(f"run s.toml --set duration='0.5 s' --no-digest --out out --no-packets {closed}", directory)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    # The output has not been written into a file with the stream's descriptor number.
    assert (directory / "out" / "summary.json").read_bytes().startswith(b"{")


@pytest.mark.parametrize(("line", "status"), [("list", 1), ("--help", 1), ("explain cubic --json", 1)])
def test_a_full_output_is_one_line(directory: Path, line: str, status: int) -> None:
    done = shell(f"{line} >/dev/full", directory)
    assert (done.returncode, done.stderr) == (status, b"error: No space left on device\n")


def test_a_reader_that_closes_its_pipe_is_no_error(directory: Path) -> None:
    done = shell("list | head -n 1", directory)
    assert done.stderr == b""
    done = shell("run nowhere.toml 2>&1 | true", directory)
    assert done.stderr == b""


def test_an_argument_that_is_not_text_is_named(directory: Path) -> None:
    done = shell("run $(printf '\\377.toml')", directory)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"error: argument 2, '\\udcff.toml', is not UTF-8 text; rename the file or retype it\n"


def test_messages_about_arguments_have_no_control_characters(directory: Path) -> None:
    done = shell("run s.toml \"$(printf 'b\\033[31m')\"", directory)
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert b"[31m" in done.stderr
