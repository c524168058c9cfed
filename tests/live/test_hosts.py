"""Hosts with several devices and addresses: which device and which way a program's packets take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import command, missing

ROOT = Path(__file__).resolve().parents[2]

TWO_LINKS = """
duration = "20 s"
[link.wifi]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "5 ms"
[link.lte]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
[flow.first]
from = "A"
to = "B"
route = ["wifi"]
[flow.second]
from = "A"
to = "B"
route = ["lte"]
"""


BAD = [
    ('[host.A]\ndevices = ["wifi", "lt"]', "19:20", "there is no link, group or gateway `lt` at `A`", "lte"),
    ('[host.A]\ndevices = ["wifi", "wifi"]', "19:20", "`wifi` is a device of `A` already", "once"),
    ('[host.A]\ndevices = ["wifi"]', "15:8", "`second` leaves `A` over `lte`, which is none of its devices", "wifi"),
    ('[host.A]\naddresses = ["10.113.0.9"]', "19:14", "a network whose addresses devices here have", "10.113.0.0/16"),
    ('[host.A]\naddresses = ["here"]', "19:14", '"here" is no address', "192.0.2.1"),
    (
        '[host.A]\naddresses = ["192.0.2.1"]\n[host.B]\naddresses = ["192.0.2.1"]',
        "21:14",
        "is an address of `A`",
        "once",
    ),
    ("match = { port = 70000 }", "18:18", "70000 is no port", "1 to 65535"),
    ("match = { ports = 7 }", "18:11", "ports", "port"),
    ('match = { prefix = "192.0.2.0/33" }', "18:20", "is no prefix", "192.0.2.0/24"),
    ("match = {}", "18:9", "`match` is empty", "port"),
    ("match = { port = 7 }", "18:9", "this flow has an application of ours", "exec"),
]


@pytest.mark.brief
@pytest.mark.parametrize(("more", "place", "message", "help_"), BAD)
def test_bad_devices_addresses_and_matches_are_refused(
    tmp_path: Path, more: str, place: str, message: str, help_: str
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TWO_LINKS.lstrip() + more + "\n")
    done = subprocess.run(
        command("run", file, "--engine", "live"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert f"scenario.toml:{place}" in done.stderr, done.stderr
    assert message in done.stderr
    assert help_ in done.stderr


@pytest.mark.brief
def test_the_simulator_runs_devices_and_refuses_a_match(tmp_path: Path) -> None:
    """The same figures with and without devices; a ``match`` has a line."""
    file = tmp_path / "scenario.toml"

    def run(text: str) -> subprocess.CompletedProcess[str]:
        file.write_text(text)
        words = command("run", file, "--json", "--set", "duration=2 s")
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    devices = '[host.A]\ndevices = ["wifi", "lte"]\naddresses = ["192.0.2.1"]\n'
    plain, several = run(TWO_LINKS), run(TWO_LINKS + devices)
    assert several.returncode == 0, several.stderr
    assert json.loads(several.stdout)["digest"] == json.loads(plain.stdout)["digest"]
    refused = run(TWO_LINKS + "match = { port = 7 }\n")
    assert refused.returncode == 2
    assert "`match` is something that only the live engine has" in refused.stderr
    assert "scenario.toml:19:9" in refused.stderr


def test_wireguard_costs_its_headers_and_no_more(
    live_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 bytes for each packet over IPv4. Fails for a transfer that goes around the tunnel: it carries more data in a
    packet, and is faster than the headers permit."""
    absent = [name for name in ("wireguard-go", "wg", "ip") if shutil.which(name) is None]
    if absent:
        missing(f"not installed: {', '.join(absent)} (Debian: wireguard-go, wireguard-tools, iproute2)")
    if os.geteuid() != 0:
        missing("root, for the tunnel's device")
    monkeypatch.chdir(tmp_path)
    octets = 4_000_000
    text = (ROOT / "scenarios" / "hosts" / "wireguard.toml").read_text()
    (tmp_path / "scenario.toml").write_text(text.replace("20_000_000", str(octets)))
    words = command("run", "scenario.toml", "--engine", "live", "--json", "--allow-tainted")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stderr.splitlines() if "the tunnel:" in line]
    assert [(line[0], line[3]) for line in told] == [("beside", str(octets)), ("inside", str(octets))]
    assert float(told[0][5]) <= 20 * 1448 / 1500
    assert float(told[1][5]) <= 20 * 1368 / 1480
    packets = json.loads(done.stdout)["links"]["line"]["reverse"]["sent_packets"]
    assert packets >= octets / 1448 + octets / 1368
