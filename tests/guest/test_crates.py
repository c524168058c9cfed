"""Tests of the crates that need a kernel, which are marked as ignored, and behaviour scripts."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from . import programs
from .inside import ROOT

MODULES = [
    ("live", "conservation"),
    ("live", "contents"),
    ("live", "kernel_flows"),
    ("live", "own_end"),
    ("gatewayd", "bypass"),
    ("gatewayd", "caps"),
    ("gatewayd", "changes"),
    ("gatewayd", "hostile"),
    ("gatewayd", "names"),
    ("gatewayd", "namespaces"),
    ("gatewayd", "outputs"),
    ("gatewayd", "protect"),
    ("gatewayd", "reasons"),
    ("gatewayd", "servers"),
    ("gatewayd", "traffic"),
]


def ran(package: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = programs.path(f"{package} all")
    return subprocess.run([program, "--ignored", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("package", "module"), MODULES)
def test_ignored_tests_of_a_module_pass(package: str, module: str) -> None:
    done = ran(package, "--test-threads=1", f"{module}::")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 passed" not in done.stdout


@pytest.mark.parametrize("package", sorted({package for package, _ in MODULES}))
def test_all_modules_with_ignored_tests_are_run(package: str) -> None:
    lines = ran(package, "--list", "--format", "terse").stdout.splitlines()
    assert {(package, line.partition("::")[0]) for line in lines} == {one for one in MODULES if one[0] == package}


def outcomes(scripts: list[str], *settings: str) -> dict[str, Any]:
    """Outcomes of behaviour scripts on the kernel."""
    words = [programs.path("live scripts"), *settings, *(f"tests/scripts/{script}" for script in scripts)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    told = map(json.loads, done.stdout.splitlines())
    return {one["script"].removeprefix("tests/scripts/"): one["outcome"] for one in told}


ABOUT = {
    "rack/probe_repairs.pkt": "tcp_early_retrans",
    "receiver/sack_blocks.pkt": "tcp_sack",
    "spurious/frto_sack.pkt": "tcp_frto",
}
"""Scripts, each with its essential setting."""


def test_scripts_agree_with_the_kernel_only_with_their_setting() -> None:
    """The wrong system is the same kernel without the setting."""
    assert outcomes(list(ABOUT)) == dict.fromkeys(ABOUT, "agrees")
    for script, setting in ABOUT.items():
        assert outcomes([script], "--set", f"net.ipv4.{setting}=0") == {script: "differs"}
