"""Tests of the crates that need a kernel: in their test programs they are marked as ignored."""

from __future__ import annotations

import subprocess

import pytest

from . import programs

MODULES = [
    ("live", "conservation"),
    ("live", "contents"),
    ("live", "kernel_flows"),
    ("live", "own_end"),
    ("gatewayd", "changes"),
    ("gatewayd", "hostile"),
    ("gatewayd", "names"),
    ("gatewayd", "namespaces"),
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
