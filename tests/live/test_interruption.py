"""SIGINT and SIGTERM end a command that prepares a live run, and a shell, quickly and cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import FLOW, PATH, command, missing
from .test_tear_down import MARK, processes, settle

LIMIT_S = 3.0
"""As in `tests/python/test_signals.py`: the rule is 0.2 s."""

COMPILER = """#!/bin/sh
echo > "$STARTED"
sleep 1000 &
wait
"""
"""A slow compiler with a child process."""

PROGRAM = '\n[host.A]\nexec = ["sleep", "1000"]\n'


class Started:
    """A running command whose processes and temporary files carry a unique mark."""

    def __init__(self, folder: Path, words: list[str], slow: str | None = None) -> None:
        """Start it; ``slow`` is the name of the slow compiler."""
        self.mark = f"{os.getpid()}-{folder.name}"
        self.compiling = folder / "compiling"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        if slow is not None:
            (tools / slow).write_text(COMPILER)
            (tools / slow).chmod(0o755)
        environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "TMPDIR": str(self.temporary),
            "STARTED": str(self.compiling),
            MARK: self.mark,
        }
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, number: signal.Signals) -> str:
        """Send a signal, and check that the command ends without leftovers; return its message."""
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            _, told = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        assert time.monotonic() - began < LIMIT_S
        assert self.process.returncode == 128 + number, told
        assert settle(lambda: not processes(self.mark), 5), "a process is left"
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in told
        return told


@pytest.mark.brief
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("slow", "words"),
    [
        # The simulator's build of a control, the kernel's, and the trace.
        ("cc", ("run", "own.toml", "--engine", "live")),
        ("clang", ("run", "shipped.toml", "--engine", "live", "--trace", "off")),
        ("clang", ("run", "plain.toml", "--engine", "live", "--trace", "events")),
        ("clang", ("run", "plain.toml", "--engine", "live")),
        ("clang", ("validate", "shipped.toml")),
        ("clang", ("cc", "load", "own.c")),
    ],
)
def test_a_signal_ends_the_preparation_of_a_live_run(
    live_machine: None, tmp_path: Path, slow: str, words: tuple[str, ...], number: signal.Signals
) -> None:
    """Detects an engine that handles a signal only after the compiler has ended, or leaves the compiler running."""
    if not Path("/sys/kernel/btf/vmlinux").exists():
        missing("this kernel takes no BPF program (CONFIG_DEBUG_INFO_BTF)")
    (tmp_path / "own.c").write_text("int x;\n")
    (tmp_path / "own.toml").write_text(PATH + FLOW + 'cc = { kind = "bpf", file = "own.c" }\n')
    (tmp_path / "shipped.toml").write_text(PATH + FLOW + 'cc = "cubic-plus"\n')
    (tmp_path / "plain.toml").write_text(PATH + FLOW)
    started = Started(tmp_path, command(*words), slow)
    assert settle(started.compiling.exists, 30), started.process.communicate(timeout=5)
    started.end(number)


@pytest.mark.brief
@pytest.mark.parametrize(
    "program", ["exec sleep 1000", "trap 'exit 3' TERM; sleep 1000 & wait", "trap '' TERM; sleep 1000 & wait"]
)
def test_sigterm_ends_a_shell_and_its_program(live_machine: None, tmp_path: Path, program: str) -> None:
    """Also a program that ignores the signal, after a while."""
    (tmp_path / "a.toml").write_text(PATH + FLOW)
    ready = tmp_path / "ready"
    words = command("shell", "a.toml", "A", "--", "sh", "-c", f"echo > {ready}; {program}")
    started = Started(tmp_path, words)
    assert settle(ready.exists, 30), started.process.communicate(timeout=5)
    time.sleep(0.1)
    assert started.end(signal.SIGTERM).splitlines()[-1] == "error: terminated"


@pytest.mark.brief
def test_sigint_leaves_a_shell_to_its_program(live_machine: None, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PATH + FLOW)
    ready = tmp_path / "ready"
    words = command("shell", "a.toml", "A", "--", "sh", "-c", f"echo > {ready}; sleep 0.5; exit 0")
    started = Started(tmp_path, words)
    assert settle(ready.exists, 30), started.process.communicate(timeout=5)
    started.process.send_signal(signal.SIGINT)
    _, told = started.process.communicate(timeout=60)
    assert started.process.returncode == 0, told


SLOW_RUN = """
from anabranch import _engine
text = open("a.toml").read()
class Enough(Exception): pass
def stop(share):
    if share > 0:
        raise Enough
try:
    _engine.run_live(text, "a.toml", [], progress=stop)
except Enough:
    print("raised")
"""


@pytest.mark.brief
def test_an_exception_of_a_progress_report_ends_the_run(live_machine: None, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text((PATH + FLOW + PROGRAM).replace("3 s", "600 s"))
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SLOW_RUN], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr
    assert time.monotonic() - began < 60
