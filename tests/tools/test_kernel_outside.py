"""Reports of tests in virtual time by the pytest on the host: without a kernel, and after a guest has stopped."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
outside: Any = importlib.import_module("guest.outside")
MODULE = "tests/guest/test_settings.py"


def run(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", MODULE]
    clean = {name: value for name, value in os.environ.items() if name not in ("ANABRANCH_KERNEL", outside.REQUIRED)}
    environment = {**clean, "XDG_CACHE_HOME": str(cache), **environment}
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_without_a_kernel_the_tests_are_skipped_with_the_command(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"{MODULE}:" in done.stdout
    assert "no kernel is built that could run in virtual time; type: anabranch kernel build" in done.stdout


def test_without_a_required_kernel_the_tests_fail(tmp_path: Path) -> None:
    done = run(tmp_path, **{outside.REQUIRED: "required"})
    assert done.returncode == 1
    assert "no kernel is built that could run in virtual time" in done.stdout
    assert "1 failed" in done.stdout


def item(name: str) -> Any:
    return SimpleNamespace(nodeid=name, location=("", 0, name), keywords={}, path=outside.HERE / "test_x.py")


def test_a_stopped_guest_fails_one_test_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a plugin that stops after the failure, and one that starts the same test for ever."""
    items = [item(name) for name in "abcd"]
    plugin = outside.Outside(SimpleNamespace(workerinput={}))
    guests: list[list[str]] = []

    def guest(_: object, left: list[Any]) -> str:
        guests.append([one.nodeid for one in left])
        for one in left:
            if one.nodeid == "b":
                return "the kernel panicked"
            plugin.reports[one.nodeid] = [outside._report(one, "passed", None)]
        return "the guest ended with 0"

    monkeypatch.setattr(plugin, "_guest", guest)
    monkeypatch.setattr(outside, "chosen", lambda: None)
    plugin._run(items)
    assert guests == [["a", "b", "c", "d"], ["c", "d"]]
    outcomes = {name: reports[0].outcome for name, reports in plugin.reports.items()}
    assert outcomes == {"a": "passed", "b": "failed", "c": "passed", "d": "passed"}
    assert plugin.reports["b"][0].longrepr == "the kernel panicked"
