"""Units of systemd: ``systemd-analyze`` finds no fault, and no unit is more exposed than its work needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from anabranch.installed import unit

ROOT = Path(__file__).resolve().parents[2]
UNITS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "packaging").glob("*.service"))} | {
    unit.name("ab_cubicplus"): unit.text("ab_cubicplus", ["cubic-plus", "--default"])
}
MOST_EXPOSED = {
    "anabranch-aqm@.service": 7.0,
    "anabranch-cc-ab_cubicplus.service": 7.0,
    "anabranch-gateway-page.service": 3.0,
    "anabranch-gateway-protect.service": 5.0,
    "anabranch-gateway.service": 3.0,
    "anabranch-group@.service": 3.0,
}
"""Greatest exposure (``systemd-analyze security``): 3 for daemons, 5 and 7 for commands that end; the latter load
programs into the kernel, for which they need ``CAP_SYS_ADMIN``."""


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``systemd-analyze``, or skip."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not there (package systemd)")
    told = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    version = re.match(r"systemd (\d+)", told)
    if version is None or int(version[1]) < 250:
        pytest.skip("systemd-analyze before version 250 has no --offline")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)


def written(name: str, folder: Path) -> Path:
    """The unit's file, with a program in place of those that may not be installed; a template gets an instance."""
    program = folder / "program"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    file = folder / name.replace("@.", "@eth0.")
    file.write_text(re.sub(r"(?m)^(Exec\w+=-?)\S+", rf"\g<1>{program}", UNITS[name]), "utf-8")
    return file


def test_every_unit_has_a_bound() -> None:
    assert set(MOST_EXPOSED) == set(UNITS)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_no_fault_in_a_unit(tmp_path: Path, name: str) -> None:
    done = analyze("verify", "--man=no", written(name, tmp_path))
    of_ours = [line for line in done.stderr.splitlines() if "anabranch" in line]
    assert (done.returncode, of_ours) == (0, []), done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_not_more_exposed_than_its_work_needs(tmp_path: Path, name: str) -> None:
    bound = f"--threshold={MOST_EXPOSED[name] * 10:.0f}"
    done = analyze("security", "--offline=true", "--no-pager", bound, written(name, tmp_path))
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()


def test_an_unknown_key_is_a_fault(tmp_path: Path) -> None:
    """Detects a test that no unit fails."""
    file = written("anabranch-group@.service", tmp_path)
    file.write_text(file.read_text("utf-8").replace("DevicePolicy=", "DevicePolicies="), "utf-8")
    assert "DevicePolicies" in analyze("verify", "--man=no", file).stderr
