"""``anabranch script --engine kernel`` with a built kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import Call
from .real_kernel import kernel, needs_kernel

pytestmark = needs_kernel

SCRIPTS = Path(__file__).resolve().parents[2] / "tests/scripts"
SACK = SCRIPTS / "receiver/sack_blocks.pkt"
"""A script that the kernel passes, with SACK."""


def test_a_script_passes_on_the_kernel(anabranch: Call) -> None:
    done = anabranch("script", SACK, "--engine", "kernel")
    assert (done.status, done.out) == (0, f"{SACK}: passes (Linux {kernel().release})\n")


def test_the_kernel_fails_a_wrong_script_at_the_same_place_each_time(anabranch: Call, tmp_path: Path) -> None:
    """The kernel is the same; the script expects another acknowledgment."""
    script = tmp_path / "wrong.pkt"
    text = SACK.read_text("utf-8")
    assert "> . 1:1(0) ack 6001\n" in text
    script.write_text(text.replace("> . 1:1(0) ack 6001\n", "> . 1:1(0) ack 5001\n"))
    first, second = (anabranch("script", script, "--engine", "kernel", "--json") for _ in range(2))
    assert (first.status, first.out) == (1, second.out)
    (outcome,) = json.loads(first.out)
    assert (outcome["outcome"], outcome["engine"], outcome["stack"]) == ("differs", "kernel", kernel().release)
    assert [one["name"] for one in outcome["fields"] if one["differs"]] == ["acknowledgment"]


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("0 `sysctl -q net.ipv4.tcp_nothing=1`\n+0 < S 0:0(0) win 1\n", 0, "not applicable (Linux"),
        ("--transport.tlp=off\n+0 < S 0:0(0) win 1\n", 0, "the kernel has no switch like `--transport.tlp`"),
        ("0 `sysctl -q kernel.sysrq=1`\n", 2, "`kernel.sysrq` is no setting of a network"),
        ("+0 close(3) = 0\n", 2, "no call above returned the descriptor 3"),
    ],
)
def test_settings_and_mistakes(anabranch: Call, tmp_path: Path, text: str, status: int, told: str) -> None:
    script = tmp_path / "s.pkt"
    script.write_text(text)
    done = anabranch("script", script, "--engine", "kernel")
    assert done.status == status
    assert told in done.out + done.err, done.out + done.err
