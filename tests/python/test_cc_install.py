"""``anabranch cc install``, ``status`` and ``remove``: messages, and the forms of units and metrics."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from anabranch.installed import cgroups, controls, netlink, text, unit
from anabranch.installed.cgroups import _instructions
from anabranch.installed.record import Record, Scope

from .command import Call


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pass the check of the user; nothing that is tested here changes the machine."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


NO_PREFIX = "it is no prefix of IPv4 or IPv6"
NO_ROUTE = "the main table has no route with exactly this prefix"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("install cubic-pls", 'no control "cubic-pls" ships, and there is no such file\n  did you mean "cubic-plus"?'),
        ("install reno --route 192.0.2.1/24", f"--route 192.0.2.1/24: {NO_PREFIX}\n  did you mean 192.0.2.0/24?"),
        ("install reno --route here", f"--route here: {NO_PREFIX}\n  --route 192.0.2.0/24, "),
        ("install reno --route 203.0.113.0/24", f"--route 203.0.113.0/24: {NO_ROUTE}\n  "),
        ("install reno --cgroup none/such", "--cgroup none/such: "),
        ("remove nobody", "no control `nobody` is installed\n  "),
        ("status nobody", "no control `nobody` is installed or loaded\n  "),
        ("status --json --prometheus", "--json and --prometheus both write standard output"),
    ],
)
def test_bad_input(anabranch: Call, as_root: None, words: str, message: str) -> None:
    done = anabranch("cc", *words.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}")


@pytest.mark.parametrize("word", ["install", "remove"])
def test_without_root(anabranch: Call, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = anabranch("cc", word, "cubic-plus")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"error: cc {word} needs root\n  sudo anabranch cc {word} cubic-plus\n"


def test_names_and_words_of_a_unit() -> None:
    assert unit.name("ab_a+b") == "anabranch-cc-ab_a\\x2bb.service"
    line = next(one for one in unit.text("x", ['a "b" 100% $HOME\\']).splitlines() if one.startswith("ExecStart="))
    assert line.endswith('"cc" "install" "a \\"b\\" 100%% $$HOME\\\\"')


def test_attributes_are_read_as_they_are_packed() -> None:
    values = {1: b"abc", 8: b"", 16: b"reno\0"}
    assert netlink.attributes(netlink.packed(values)) == values
    assert netlink.attributes(b"\x01\x00") == {}


def test_the_jumps_of_the_program_end_inside_it() -> None:
    code = _instructions("ab_cubicplus")
    count = len(code) // 8
    for at in range(count):
        operation, offset = code[8 * at], int.from_bytes(code[8 * at + 2 : 8 * at + 4], "little", signed=True)
        if operation in (0x15, 0x55):
            assert at + 1 + offset < count
    # The event that the program is not for ends with the last two instructions: return 1.
    assert 2 + 1 + int.from_bytes(code[18:20], "little") == count - 2


def test_a_record_keeps_one_scope_of_a_place(tmp_path: Path) -> None:
    made = Record("a", "a").with_scope(Scope("default", former="reno")).with_scope(Scope("default", former="cubic"))
    assert made.scopes == (Scope("default", former="cubic"),)


def test_cubic_plus_with_sack_has_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sack = tmp_path / "tcp_sack"
    monkeypatch.setattr(controls, "_SACK", sack)
    assert controls._warning("ab_cubicplus") is None
    sack.write_text("1\n")
    assert "a sixth less goodput" in (controls._warning("ab_cubicplus") or "")
    assert controls._warning("ab_westwood") is None
    sack.write_text("0\n")
    assert controls._warning("ab_cubicplus") is None


@pytest.mark.parametrize(("number", "expected"), [(errno.EACCES, None), (errno.EPERM, None), (errno.ENOENT, False)])
def test_a_link_that_only_root_may_see(monkeypatch: pytest.MonkeyPatch, number: int, expected: bool | None) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, "refused")

    monkeypatch.setattr(cgroups, "_call", refuse)
    assert cgroups.is_attached("ab_reno", Path("/sys/fs/cgroup")) is expected


def test_metrics_escape_their_labels() -> None:
    scope = {"kind": "cgroup", "where": 'a"b\\c', "former": None, "in_effect": False}
    one = {
        "name": "x",
        "ships_as": None,
        "installed": True,
        "available": True,
        "unit": None,
        "scopes": [scope],
        "connections": 2,
        "sent_bytes": 100,
        "retransmitted_bytes": 5,
    }
    document = {"controls": [one], "default": "reno", "systemd": False}
    lines = list(text.metrics(document))
    assert 'anabranch_cc_scope_in_effect{control="x",kind="cgroup",where="a\\"b\\\\c"} 0' in lines
    assert 'anabranch_cc_connections{control="x"} 2' in lines
    told = "\n".join(text.lines(document))
    unknown = {**document, "controls": [{**one, "scopes": [{**scope, "in_effect": None}]}]}
    assert not any(line.startswith("anabranch_cc_scope_in_effect{") for line in text.metrics(unknown))
    assert 'cgroup a"b\\c: unknown (needs root)' in "\n".join(text.lines(unknown))
    assert "NOT in effect; again: anabranch cc install x --cgroup" in told
    assert "2 open connections, 5 % of the octets sent were retransmissions" in told
