"""Hostile names of files never control the terminal: every command with a missing, a broken and a good file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.cli.app import app
from anabranch.text import shown

from .command import Call
from .test_output_file import INPUTS, names_a_file, parameters

NAME = "a\x1b]0;title\x07\x1b[31m\r\b\x9b2J\u202eb\u2066c\u200e\ufeff\U000e0041\x7fd"
"""ESC, BEL, CR, BS, C1's CSI, overrides of direction, invisible marks, DEL."""

TEXT = """\
title = "t\\u001b[31m\\u009b2J\\u202e"
duration = "0.3 s"
link."l\\u001b[31m\\u009b2J\\u202e" = { between = ["A\\u001b[31m\\u202e", "B"], rate = "10 Mbit/s", delay = "5 ms" }
flow."f\\u001b[31m\\u009b2J\\u202e" = { from = "A\\u001b[31m\\u202e", to = "B" }
"""
BROKEN = 'duration = "\x1b[31m\x9b2J\u202e"\n\x1b[2J = \x07\n'

Make = Callable[[Path], list[object]]

COMMANDS: dict[str, tuple[str, Make]] = {
    "run": (".toml", lambda file: ["run", file]),
    "run --wide": (".toml", lambda file: ["run", file, "--wide", "--all-flows"]),
    "run --why": (".toml", lambda file: ["run", file, "--why=all"]),
    "run --json": (".toml", lambda file: ["run", file, "--json"]),
    "run --out": (".toml", lambda file: ["run", file, "--no-packets", "--out", file.with_suffix(".out")]),
    "run --pcap": (".toml", lambda file: ["run", file, "--pcap", f"l={file.with_suffix('.pcapng')}"]),
    "run --set": (".toml", lambda file: ["run", file, "--set", f"{file.name}=1"]),
    "study": ("", lambda file: ["study", file]),
    "sweep": (".toml", lambda file: ["sweep", file, "--repeat", "2", "--out", file.with_suffix(".out")]),
    "sweep --grid": (".toml", lambda file: ["sweep", file, "--grid", f"{file.name}=1,2"]),
    "sweep --report": (".toml", lambda file: ["sweep", file, "--repeat", "1", "--report", file.with_suffix(".html")]),
    "sweep merge": ("", lambda file: ["sweep", "merge", file, "--json"]),
    "stress": ("", lambda file: ["stress", file.name]),
    "stress --goal": ("", lambda file: ["stress", "reno", "--goal", file.name]),
    "stress --against": ("", lambda file: ["stress", "reno", "--against", file.name]),
    "stress --events": ("", lambda file: ["stress", "reno", "--events", file.name]),
    "stress --stack": ("", lambda file: ["stress", "reno", "--stack", file.name]),
    "stress --budget": ("", lambda file: ["stress", "reno", "--budget", file.name]),
    "stress --out": ("", lambda file: ["stress", "vegas", "--runs", "1", "--goal", "slow", "--out", file]),
    "compare": (".toml", lambda file: ["compare", file, file.with_name("plain.toml")]),
    "compare --measure": (".toml", lambda file: ["compare", file, file, "--measure", file.name]),
    "evaluate": (".toml", lambda file: ["evaluate", file]),
    "evaluate --baseline": (".toml", lambda file: ["evaluate", "cubic", "--baseline", file]),
    "diagnose": (".pcapng", lambda file: ["diagnose", file]),
    "diagnose --json": (".pcapng", lambda file: ["diagnose", file, "--json"]),
    "diagnose --out": (".pcapng", lambda file: ["diagnose", file, "--out", file.with_suffix(".out")]),
    "diagnose --annotate": (".pcapng", lambda file: ["diagnose", file, "--annotate", file.with_suffix(".annotated")]),
    "diagnose --follow": (".pcapng", lambda file: ["diagnose", "--follow", file.name]),
    "diagnose --save-on": (".pcapng", lambda file: ["diagnose", "--follow", "lo", "--save-on", file.name]),
    "studio": (".toml", lambda file: ["studio", file, "--out", file.with_suffix(".html")]),
    "convert": (".toml", lambda file: ["convert", file, "--to", "netem"]),
    "convert --out": (".toml", lambda file: ["convert", file, "--to", "scenario", "--out", file.with_suffix(".x")]),
    "convert --link": (".toml", lambda file: ["convert", file, "--to", "netem", "--link", file.name]),
    "convert --to": (".toml", lambda file: ["convert", file, "--to", file.name]),
    "convert capture": (".pcapng", lambda file: ["convert", file, "--to", "csv"]),
    "new": (".toml", lambda file: ["new", file]),
    "new --from": (".toml", lambda file: ["new", "x", "--from", file.name]),
    "list": ("", lambda file: ["list", file.name]),
    "explain": ("", lambda file: ["explain", file.name]),
    "aqm attach": ("", lambda file: ["aqm", "attach", file.name, "--rate", "1 Mbit/s"]),
    "aqm confirm": ("", lambda file: ["aqm", "confirm", file.name]),
    "aqm status": ("", lambda file: ["aqm", "status", file.name]),
    "aqm detach": ("", lambda file: ["aqm", "detach", file.name]),
    "cc load": (".c", lambda file: ["cc", "load", file]),
    "cc install": (".c", lambda file: ["cc", "install", file]),
    "cc install --route": ("", lambda file: ["cc", "install", "reno", "--route", file.name]),
    "cc status": ("", lambda file: ["cc", "status", file.name]),
    "cc remove": ("", lambda file: ["cc", "remove", file.name]),
    "cc unload": ("", lambda file: ["cc", "unload", file.name]),
    "kernel build": (".tar.xz", lambda file: ["kernel", "build", file]),
    "kernel check": ("", lambda file: ["kernel", "check", file]),
    "gateway plan": (".toml", lambda file: ["gateway", "plan", file]),
    "gateway plan --path": (".toml", lambda file: ["gateway", "plan", file, "--path", f"{file.name}={file}"]),
    "gateway plan --status": (".toml", lambda file: ["gateway", "plan", file, "--status", file]),
    "plan cc": (".pcapng", lambda file: ["plan", "cc", file, "--seeds", "2"]),
    "plan aqm": (".pcapng", lambda file: ["plan", "aqm", file, "--rate", "1mbit", "--seeds", "2"]),
    "plan group": (".csv", lambda file: ["plan", "group", file, "--members", "2", "--rate", "1mbit"]),
    "plan group --method": (
        "",
        lambda file: ["plan", "group", "x", "--members", "2", "--rate", "1mbit", "--method", file.name],
    ),
    "validate": (".toml", lambda file: ["validate", file, "--host-times", file]),
    "validate --keep": (".toml", lambda file: ["validate", file, "--keep", file]),
    "script": (".pkt", lambda file: ["script", file]),
    "vectors": ("", lambda file: ["vectors", file.name]),
    "vectors --check": ("", lambda file: ["vectors", "reno", "--check", file]),
    "vectors --compare": (
        ".csv",
        lambda file: ["vectors", "reno", "--scenario", "one-loss", "--compare", file],
    ),
    "shell": (".toml", lambda file: ["shell", file, file.name]),
    "completion": ("", lambda file: ["completion", file.name]),
    "demo": ("", lambda file: ["demo", "--out", file / "x" if file.exists() else "/dev/null/x"]),
}


def test_every_command_that_names_a_file_is_covered() -> None:
    named = {name for name, one in parameters(app) if names_a_file(one)}
    named |= {name for name, _ in INPUTS}
    tried = {" ".join(word for word in key.split() if not word.startswith("--")) for key in COMMANDS}
    assert named <= tried


@pytest.fixture(scope="module")
def capture() -> bytes:
    plain = TEXT.replace("\\u001b[31m", "").replace("\\u009b2J", "").replace("\\u202e", "")
    return Scenario.from_text(plain, file="s.toml").run(captures=["l"]).pcapng("l")


def check(text: str, *, is_raw: bool = False) -> None:
    """Check for control sequences. The output of a conversion is data; another test checks it on a terminal."""
    if not is_raw:
        assert shown.terminal(text) == text, repr(text)


@pytest.mark.parametrize("kind", ["missing", "broken", "good", "directory"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_controls_no_terminal(
    anabranch: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capture: bytes,
    small_study: Path,
    command: str,
    kind: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    # A study of fewer runs shows the same names.
    monkeypatch.setattr("anabranch.cli.demo.STUDY", str(small_study))
    monkeypatch.setattr("anabranch.cli.demo.FIGURE", "fig3")
    # A build installs missing packages, and writes into the user's cache.
    monkeypatch.setattr("anabranch.kernel.build._installs", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    suffix, make = COMMANDS[command]
    file = tmp_path / f"{NAME}{suffix}"
    (tmp_path / "plain.toml").write_text(TEXT)
    if kind == "directory":
        file.mkdir()
        (file / "x\x1b[2J.toml").write_text(TEXT)
    elif kind == "broken":
        file.write_text(BROKEN)
    elif kind == "good":
        file.write_bytes(capture if suffix == ".pcapng" else TEXT.encode())
    done = anabranch(*make(file))
    assert done.status in (0, 1, 2), done
    assert "a fault of anabranch" not in done.err, done.err
    check(done.err)
    check(done.out, is_raw=command.startswith("convert") and done.status == 0)


def on_a_terminal(*words: object) -> tuple[int, str]:
    """The exit status of a command, and its output on a terminal."""
    return printed_on_a_terminal(sys.executable, "-m", "anabranch", *words)


def printed_on_a_terminal(*words: object) -> tuple[int, str]:
    main, end = os.openpty()
    printed: list[bytes] = []
    with subprocess.Popen(list(map(str, words)), stdout=end, stderr=end, stdin=subprocess.DEVNULL) as process:  # noqa: S603 - our own command
        os.close(end)
        try:
            while chunk := os.read(main, 4096):
                printed.append(chunk)
        except OSError:
            pass
    os.close(main)
    return process.returncode, b"".join(printed).decode().replace("\r\n", "\n")


STYLES = ("\x1b[0m", "\x1b[1m", "\x1b[22m", "\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A", "\r")
"""Control sequences of our tables and progress bars."""


@pytest.mark.parametrize("command", ["run", "convert", "convert --out", "diagnose", "new", "sweep merge"])
def test_a_terminal_gets_names_as_text(tmp_path: Path, capture: bytes, command: str) -> None:
    suffix, make = COMMANDS[command]
    file = tmp_path / f"{NAME}{suffix}"
    if suffix:
        file.write_bytes(capture if suffix == ".pcapng" else TEXT.encode())
    if command == "new":
        file.unlink()
    status, text = on_a_terminal(*make(file))
    assert status in (0, 2), text
    for style in STYLES:
        text = text.replace(style, "")
    assert shown.terminal(text) == text, repr(text)


def test_a_progress_bar_shows_its_label_as_text() -> None:
    program = (
        "import sys; from anabranch import progress; progress.PATIENCE_S = 0\n"
        "with progress.Progress(sys.argv[1], 3) as bar: bar.update(1); bar.update(2)"
    )
    text = printed_on_a_terminal(sys.executable, "-c", program, f"{NAME} [bold red]x[/]")[1]
    for style in STYLES:
        text = text.replace(style, "")
    assert "[bold red]x[/]" in text
    assert "\x1b]0;title" not in text
    assert "\x1b[31m" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text


def test_errors_and_warnings_show_names_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    from anabranch.cli.common import _show_warning, guarded

    class PanicException(BaseException):
        """Like the engine's panic."""

    for error in (ValueError(NAME), PanicException(NAME)):
        with pytest.raises(SystemExit) as ended, guarded():
            raise error
        assert ended.value.code == 1
        check(capsys.readouterr().err)
    _show_warning(UserWarning(NAME), UserWarning, f"{NAME}.py", 1)
    said = capsys.readouterr().err
    assert "UserWarning" in said
    check(said)
