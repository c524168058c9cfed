"""``anabranch aqm``: refusals that need no privilege, and the text for Prometheus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch.aqm import metrics
from anabranch.aqm.attach import options_of, scenario_rate
from anabranch.errors import UserError

from .command import Call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="devices of Linux")

QUEUE: dict[str, Any] = {
    "device": 'eth"0\\',
    "kind": "share-red",
    "rate_bit_s": 95_000_000,
    "confirmed": True,
    "packets": 12,
    "bytes": 18_000,
    "dropped_packets": 2,
    "dropped_bytes": 3_000,
    "marked_packets": 1,
    "full_packets": 0,
    "aggregates": 0,
    "other_frames": 3,
    "average": 5.25,
    "average_in": "packets",
    "waiting_packets": 4,
    "waiting_bytes": 6_000,
    "connections": 2,
    "active_connections": 1,
    "load": 0.5,
    "ns_per_packet": None,
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["eth0"], "--rate is missing"),
        (["eth0", "--rate", "fast"], "--rate"),
        (["eth0", "--rate", "0.5 bit/s"], "--rate"),
        (["eth0", "--rate", "9 Tbit/s"], "from 1 kbit/s to 1 Tbit/s"),
        (["eth0", "--rate", "9 Mbit/s", "--kind", "share-rde"], "did you mean"),
        (["eth0", "--rate", "9 Mbit/s", "--kind", "codel"], "has a program"),
        (["eth0", "--rate", "9 Mbit/s", "--set", "weight"], "KEY=VALUE was expected"),
        (["eth0", "--rate", "9 Mbit/s", "--set", "wieght=0.1"], "did you mean `weight`?"),
        (["eth0", "--rate", "9 Mbit/s", "--set", "weight=7"], "--set weight=7"),
        (["eth0", "--rate", "9 Mbit/s", "--set", "max_probability=NaN"], "max_probability is no finite number"),
        (["eth0", "--rate", "9 Mbit/s", "--set", "weight=1e999"], "weight is no finite number"),
        (["eth0", "--rate", "9 Mbit/s", "--no-confirm", "--confirm-within", "5"], "exclude each other"),
        (["eth0", "--rate", "9tbit"], "from 1 kbit/s to 1 Tbit/s"),
        (["no-such-device", "--rate", "9mbit", "--set", "limit=67packets"], "there is no device `no-such-device`"),
        (["eth0", "--rate", "9 Mbit/s", "--confirm-within", "0"], "from 1 to 86400 seconds"),
        (["no-such-device", "--rate", "9 Mbit/s"], "there is no device `no-such-device`"),
    ],
)
def test_bad_input_is_refused_with_what_to_type(anabranch: Call, words: list[str], expected: str) -> None:
    done = anabranch("aqm", "attach", *words)
    assert done.status == 2
    assert expected in done.err
    assert "fault of anabranch" not in done.err


@pytest.mark.parametrize("name", ["confirm", "status", "detach"])
def test_an_unknown_device_is_refused(anabranch: Call, name: str) -> None:
    done = anabranch("aqm", name, "no-such-device")
    assert done.status == 2
    assert "there is no device `no-such-device`" in done.err


def test_two_formats_exclude_each_other(anabranch: Call) -> None:
    done = anabranch("aqm", "status", "--json", "--prometheus")
    assert done.status == 2
    assert "exclude each other" in done.err


def test_options_are_numbers_switches_and_texts() -> None:
    assert options_of(["weight=0.01", "ecn=true", "limit=20 packets", "kind=[1]"]) == {
        "weight": 0.01,
        "ecn": True,
        "limit": "20 packets",
        "kind": "[1]",
    }
    with pytest.raises(UserError, match="KEY=VALUE"):
        options_of(["=3"])


def test_a_rate_may_have_a_unit_of_tc() -> None:
    assert [scenario_rate(text) for text in ("20mbit", "2.5 Mbit/s", "fast")] == [
        "20000000 bit/s",
        "2.5 Mbit/s",
        "fast",
    ]


def test_the_unit_suits_names_with_dashes_and_devices_that_return() -> None:
    """`%I` is the device's name, `%i` that of its unit in systemd."""
    root = Path(__file__).parents[2]
    lines = (root / "packaging/anabranch-aqm@.service").read_text().splitlines()
    keys = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    for key in ("ConditionPathExists", "EnvironmentFile", "ExecStart", "ExecStop"):
        assert "%I" in keys[key], key
        assert "%i" not in keys[key], key
    assert keys["ExecStop"].startswith("-")
    assert "sys-subsystem-net-devices-%i.device" in keys["WantedBy"].split()
    pages = {path.name for path in (root / "docs/man").iterdir()}
    assert keys["Documentation"].removeprefix("man:").replace("(1)", ".1") in pages


def test_the_text_for_prometheus() -> None:
    """Each metric has a help text, a type and one line per queue; labels are escaped."""
    lines = metrics([QUEUE, {**QUEUE, "device": "wan"}]).splitlines()
    assert 'anabranch_aqm_dropped_packets_total{device="eth\\"0\\\\",kind="share-red"} 2' in lines
    assert 'anabranch_aqm_average_length{device="wan",kind="share-red"} 5.25' in lines
    assert 'anabranch_aqm_confirmed{device="wan",kind="share-red"} 1' in lines
    helps = [line.split()[2] for line in lines if line.startswith("# HELP")]
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert helps == types
    assert len(lines) == 4 * len(helps)
    assert all(line.split()[3] == "counter" for line in lines if "_total" in line and line.startswith("# TYPE"))
    assert len(metrics([]).splitlines()) == 2 * len(helps)
