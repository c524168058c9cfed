"""``anabranch completion`` covers every command, option and name; bash completes by the script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from anabranch.cli.completion import SHELLS, commands, script
from anabranch.cli.explain import registry

from .command import Call

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_offered(anabranch: Call, shell: str) -> None:
    done = anabranch("completion", shell)
    assert (done.status, done.err) == (0, "")
    for command in commands():
        assert all(word in done.out for word in command.path.split())
        for option in command.options:
            for name in option.names:
                assert (f"-l {name[2:]} " if shell == "fish" and name.startswith("--") else name[1:]) in done.out


@pytest.mark.parametrize("shell", SHELLS)
def test_names_of_components_and_studies_are_offered(shell: str) -> None:
    text = script(shell)
    assert [item["name"] for item in registry() if item["name"] not in text] == []


def test_an_unknown_shell(anabranch: Call) -> None:
    done = anabranch("completion", "bahs")
    assert (done.status, done.out, done.err) == (
        2, "", 'error: there is no completion for "bahs"\n  did you mean "bash"?\n',
    )  # fmt: skip


def completed(line: str, folder: Path) -> list[str]:
    """The completions that bash offers for ``line``, whose last word is incomplete."""
    assert BASH is not None
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script('bash')}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _anabranch\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [BASH, "--norc", "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("anabranch r", ["run"]),
        ("anabranch cc ", ["list", "load", "unload", "install", "status", "remove"]),
        ("anabranch run --wi", ["--wide"]),
        ("anabranch run --why", ["--why", "--why=all"]),
        ("anabranch run s.toml --engine ", ["sim", "live", "kernel"]),
        ("anabranch run s.toml --seed ", []),
        ("anabranch run ", ["a path.toml", "s.toml", "folder"]),
        ("anabranch run - --out f", ["folder"]),
        ("anabranch explain cub", ["cubic", "cubic-plus"]),
        ("anabranch list qu", ["queue"]),
        ("anabranch study reord", ["reordering"]),
        ("anabranch completion ", ["bash", "zsh", "fish"]),
        ("anabranch cc list --j", ["--json"]),
    ],
)
def test_bash_completes(tmp_path: Path, line: str, offered: list[str]) -> None:
    (tmp_path / "s.toml").touch()
    (tmp_path / "a path.toml").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder").mkdir()
    assert sorted(completed(line, tmp_path)) == sorted(offered)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_reads_its_script(tmp_path: Path) -> None:
    file = tmp_path / "anabranch.fish"
    file.write_text(script("fish"), encoding="utf-8")
    done = subprocess.run(["fish", "--no-execute", str(file)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_script(tmp_path: Path) -> None:
    file = tmp_path / "_anabranch"
    file.write_text(script("zsh"), encoding="utf-8")
    done = subprocess.run(["zsh", "-n", str(file)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, done.stderr) == (0, "")
