"""Ctrl-C and SIGTERM end a command quickly in real time, independent of simulated time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .kept import kept_points

LIMIT_S = 3.0
"""The rule is 0.2 s; a busy machine may take longer. In each of these scenarios the simulation would take minutes."""

PATH = """
duration = "{duration}"
[link.a]
between = ["S", "R"]
{link}
[flow.m]
from = "S"
to = "R"
stack = "rfc"
transport = {{ receive_window = "64 KiB" }}
"""
HARDLY_ANY_TIME = PATH.format(duration="1 s", link='delay = "1 ps"')
YEARS = PATH.format(duration="7200000 s", link='rate = "100 Mbit/s"\ndelay = "10 ms"')
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def started(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """Start a command, and wait until its handlers are installed and its work has begun."""
    command = [sys.executable, "-m", "anabranch", *map(str, arguments)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # The engine's thread shows that the work has begun.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if any(named(task) == "anabranch" for task in Path(f"/proc/{process.pid}/task").glob("*")):
            break
        time.sleep(0.02)
    time.sleep(0.2)
    assert process.poll() is None, process.communicate()
    return process


def named(task: Path) -> str:
    """The name of a thread; empty if it has ended."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[float, str]:
    """Seconds from a signal to the end, and the message; the exit status must be the signal's."""
    began = time.monotonic()
    process.send_signal(number)
    out, told = process.communicate(timeout=60)
    assert process.returncode == STATUS[number], told
    assert "Traceback" not in told
    assert out == ""
    return time.monotonic() - began, told


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("text", "number"),
    [(HARDLY_ANY_TIME, signal.SIGINT), (HARDLY_ANY_TIME, signal.SIGTERM), (YEARS, signal.SIGTERM)],
)
def test_a_signal_ends_a_run(tmp_path: Path, text: str, number: signal.Signals) -> None:
    (tmp_path / "a.toml").write_text(text)
    process = started("run", "a.toml", "--out", "out", "--no-packets", "--samples", "1000000", cwd=tmp_path)
    seconds, _ = ended(process, number)
    assert seconds < LIMIT_S
    assert [path.name for path in tmp_path.iterdir()] == ["a.toml"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_signal_preserves_finished_points_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(YEARS)
    short = ",".join(f"'{n} ms'" for n in range(100, 132))
    grid = ["--grid", f"duration={short},'7200000 s'", "--jobs", "1", "--out", "out"]
    process = started("sweep", "a.toml", *grid, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(kept_points(tmp_path / "out")) < 16:
        time.sleep(0.05)
    seconds, _ = ended(process, signal.SIGTERM)
    assert seconds < LIMIT_S
    kept = kept_points(tmp_path / "out")
    # The finished chunks, without the point that takes years.
    assert 16 <= len(kept) <= 32
    assert all(json.loads(point)["summary"]["flows"] for point in kept.values())


def test_a_command_in_a_busy_library_call_is_ended(tmp_path: Path) -> None:
    program = (
        "import hashlib\n"
        "from pathlib import Path\n"
        "from anabranch import interrupt\n"
        "from anabranch.files import owner\n"
        "interrupt.listen()\n"
        "interrupt.watch()\n"
        "half = owner.beside(Path('results'))\n"
        "half.mkdir()\n"
        "(half / 'table').write_text('half')\n"
        # The main thread handles no signal here, as in a call into a library.
        "busy = lambda: hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    busy()\n"
        # The signal arrived before the call.
        "except KeyboardInterrupt:\n"
        "    busy()\n"
    )
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 60)[0]
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60) == ("", "error: terminated\n")
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_a_remark_is_printed_without_time_to_unwind(tmp_path: Path) -> None:
    program = (
        "import os, signal, time\n"
        "from anabranch import interrupt\n"
        "interrupt.listen()\n"
        "interrupt.watch()\n"
        "with interrupt.explained('finished runs are kept'):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        time.sleep(60)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (143, "finished runs are kept\nerror: terminated\n")


def test_an_ignored_signal_remains_ignored(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from anabranch import interrupt\n"
        "interrupt.listen()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ})  # noqa: S603 - our own
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_ends_the_command(tmp_path: Path, number: signal.Signals) -> None:
    # The signal may arrive at every import after the handlers.
    program = (
        "import os, sys\n"
        "count = int(sys.argv.pop(1))\n"
        "class Counted:\n"
        "    left = count\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if 'anabranch.entry' in sys.modules:\n"
        "            Counted.left -= 1\n"
        f"            if Counted.left == 0: os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Counted())\n"
        "from anabranch.entry import main\n"
        "main()\n"
    )
    for moment in (1, 2, 3, 5, 10, 40, 60):
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", program, str(moment), "--help"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (STATUS[number], "")
        assert done.stderr == f"error: {'interrupted' if number == signal.SIGINT else 'terminated'}\n"


def test_the_package_imports_nothing_before_the_handlers() -> None:
    program = (
        "import sys\nbefore = set(sys.modules)\nimport anabranch.entry\nprint(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["anabranch", "anabranch.entry"]
