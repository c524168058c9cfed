"""Scenarios and options that the live engine refuses, before it needs privileges."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch._engine import ScenarioError

from .command import Call

PATH = """
title = "a path"
duration = "3 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
forward.queue = { kind = "drop-tail", limit = "1 bdp" }
"""

FLOW = """
[flow.main]
from = "A"
to = "B"
"""


def refused(anabranch: Call, tmp_path: Path, text: str, *options: object, name: str = "run") -> str:
    """The message of a refusal, with locations relative to the folder."""
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    engine = ["--engine", "live"] if name == "run" else []
    done = anabranch(name, file, *engine, *options)
    assert (done.status, done.out) == (2, ""), done.err
    return done.err.replace(f"{tmp_path}/", "")


CANNOT = [
    ('stack = "rfc"', "14:9", 'a live host runs this machine\'s kernel, not the stack "rfc"'),
    ('cc = "no-such"', "14:6", "unknown congestion control `no-such`"),
    ('cc = "bbr3"', "14:6", "this machine's kernel does not let a socket have the congestion control `bbr3`"),
    ('cc = { kind = "cubic", beta = 0.5 }', "14:6", "a socket can only name its congestion control"),
    ('transport = { min_rto = "1 s" }', "14:25", "`min_rto` cannot be set for a socket of this machine's kernel"),
    ('fec = { kind = "xor" }', "14:7", "whose TCP has no error correction"),
    ('protocol = "udp"\nfamily = 6\nworkload = { kind = "paced", rate = "1 Mbit/s", payload = "65500 bytes" }',
     "16:12", "a packet of 65548 bytes with its headers is more than a device carries"),
    ('[group.other]\nbetween = ["A", "C"]\nmembers = 2\nrate = "10 Mbit/s"\ncontrol = "oracle"', "18:11",
     "a live run cannot know future arrivals, which `oracle` needs"),
    ('[host.A]\nattach = "eth0"', "15:10", "a host cannot be attached to `eth0`"),
    ('[host.A]\nexec = []', "15:8", "`exec` is not a program with its arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "place", "message"), CANNOT)
def test_a_flow_that_cannot_be_live_is_refused(
    anabranch: Call, tmp_path: Path, extra: str, place: str, message: str
) -> None:
    told = refused(anabranch, tmp_path, PATH + FLOW + extra + "\n")
    assert told.startswith(f"error: scenario.toml:{place}: ")
    assert message in told.splitlines()[0]


OF_PROGRAMS = [
    ('stack = "rfc"', 11, 'this machine\'s kernel, not the stack "rfc"'),
    ('cc = { kind = "cubic", beta = 0.5 }', 11, "a socket can only name its congestion control"),
    ('cc = "bbr3"', 11, "does not let a socket have the congestion control `bbr3`"),
    ('transport = { min_rto = "1 s" }', 11, "`min_rto` cannot be set"),
    ('transport = { mss = "536 bytes" }', 11, "its packets are as large as the devices carry"),
    ('transport = { receive_window = "64 KiB", receive_autotuning = false }', 11, "a program sets its sockets itself"),
    ('start = "1 s"', 11, "a program runs at an end of this flow, and begins with the run"),
    ('start_spread = "1 s"', 11, "regardless of `start_spread`"),
    ('stop = "1 s"', 11, "regardless of `stop`"),
    ('protocol = "udp"', 11, "the UDP flow `main` has no `workload`"),
    ('fec = "xor"', 11, "has no error correction"),
    ('cc = "reno"\n[flow.other]\nfrom = "A"\nto = "C"\ncc = "bbr"\n[link.o]\nbetween = ["A", "C"]\ndelay = "1 ms"',
     15, "one default congestion control, and `main` before it asks for `reno`"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "line", "message"), OF_PROGRAMS)
def test_keys_that_programs_cannot_have_are_refused(
    anabranch: Call, tmp_path: Path, keys: str, line: int, message: str
) -> None:
    """Detects ignored keys, and messages without a line."""
    path = 'duration = "20 s"\n[link.path]\nbetween = ["A", "B"]\nrate = "10 Mbit/s"\ndelay = "10 ms"\n'
    pair = '[host.A]\nexec = ["true"]\n[host.B]\nexec = ["true"]\n'
    told = refused(anabranch, tmp_path, f"\n{path}{FLOW}{keys}\n{pair}")
    assert told.startswith(f"error: scenario.toml:{line}:"), told
    assert message in told.splitlines()[0]
    assert "expected" in told


NO_PROGRAMS = [
    ('["/no/such"]', "the program `/no/such` cannot be started: there is no such file"),
    ('["/tmp"]', "the program `/tmp` cannot be started: it is a directory"),
    ('["/dev/null"]', "the program `/dev/null` cannot be started: it is no regular file"),
    ('["/etc/passwd"]', "the program `/etc/passwd` cannot be started: it is not executable"),
    ('["/etc/passwd/x"]', "the program `/etc/passwd/x` cannot be started: Not a directory"),
    ('["no-such-program"]', "there is no program `no-such-program` in PATH"),
    ('[""]', "the name of the program in `exec` is empty"),
    ('["echo", "a\\u0000b"]', "word 2 of `exec` has a NUL character"),
]


@pytest.mark.parametrize(
    ("name", "words", "message"), [("run", *one) for one in NO_PROGRAMS] + [("shell", *NO_PROGRAMS[0])]
)
def test_a_program_that_cannot_start_is_refused(
    anabranch: Call, tmp_path: Path, name: str, words: str, message: str
) -> None:
    text = f"{PATH}{FLOW}[host.B]\nexec = {words}\n"
    told = refused(anabranch, tmp_path, text, *([] if name == "run" else ["A", "--", "true"]), name=name)
    (line,) = [one for one in told.splitlines() if one.startswith("error:")]
    assert line == f"error: scenario.toml:{len(text.splitlines())}:8: {message}"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("/no/such", "the program `/no/such` cannot be started: there is no such file"),
        ("no-such-program", "there is no program `no-such-program` in PATH"),
        ("", "the name of the program is empty"),
    ],
)
def test_a_shell_that_cannot_start_is_refused(anabranch: Call, tmp_path: Path, program: str, message: str) -> None:
    """The refusal is one message, which announces no network."""
    first, hint = refused(anabranch, tmp_path, PATH + FLOW, "A", "--", program, name="shell").splitlines()
    assert first == f"error: {message}"
    assert hint.startswith("  expected ")


def test_a_shell_in_an_unknown_host_is_refused(anabranch: Call, tmp_path: Path) -> None:
    assert 'has no host "Z"' in refused(anabranch, tmp_path, PATH + FLOW, "Z", name="shell")


def test_the_nearest_program_in_path_is_suggested(anabranch: Call, tmp_path: Path) -> None:
    told = refused(anabranch, tmp_path, PATH + FLOW + '[host.B]\nexec = ["slep", "1"]\n')
    assert "did you mean `sleep`?" in told


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

OF_DEVICES = [
    ('[host.A]\ndevices = ["wifi", "lt"]', "19:20", "there is no link, group or gateway `lt` at `A`", "lte"),
    ('[host.A]\ndevices = ["wifi", "wifi"]', "19:20", "`wifi` is a device of `A` already", "once"),
    ('[host.A]\ndevices = ["wifi"]', "15:8", "`second` leaves `A` over `lte`, which is not one of its devices", "wifi"),
    ('[host.A]\naddresses = ["10.113.0.9"]', "19:14", "a network that the live engine uses", "10.113.0.0/16"),
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


@pytest.mark.parametrize(("more", "place", "message", "expected"), OF_DEVICES)
def test_wrong_devices_addresses_and_matches_are_refused(
    anabranch: Call, tmp_path: Path, more: str, place: str, message: str, expected: str
) -> None:
    told = refused(anabranch, tmp_path, TWO_LINKS.lstrip() + more + "\n")
    assert f"scenario.toml:{place}" in told
    assert message in told
    assert expected in told


def test_the_simulator_runs_devices_and_refuses_a_match() -> None:
    devices = '[host.A]\ndevices = ["wifi", "lte"]\naddresses = ["192.0.2.1"]\n'
    plain, several = (
        Scenario.from_text(text).set("duration", "2 s").run().summary["digest"]
        for text in (TWO_LINKS, TWO_LINKS + devices)
    )
    assert several == plain
    with pytest.raises(ScenarioError, match="`match` exists only in the live engine"):
        Scenario.from_text(TWO_LINKS + "match = { port = 7 }\n").run()


def test_the_simulator_refuses_an_address_family() -> None:
    with pytest.raises(ScenarioError, match="exists only in the live engine"):
        Scenario.from_text(PATH + FLOW + "family = 6\n").run()


def at(host: str) -> str:
    """A host with our own TCP."""
    return f'[host.{host}]\ntcp = "own"\n'


OWN_PATH = """
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets", reorder = { kind = "interval", interval = 5 } }
impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
"""
OWN_FLOW = f'{FLOW}workload = {{ kind = "file", size = "400000 bytes" }}\n'


def test_the_simulator_ignores_the_tcp_of_a_host() -> None:
    text = OWN_PATH + OWN_FLOW
    with_key, without = (Scenario.from_text(each).run().summary["digest"] for each in (text + at("A"), text))
    assert with_key == without


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        (at("A").replace("own", "owm") + OWN_FLOW, "10:7", "own"),
        (at("A") + 'exec = ["true"]\n' + OWN_FLOW, "tcp", "program uses the kernel's sockets"),
        (at("A") + '[host.B]\nexec = ["true"]\n' + OWN_FLOW, "tcp", "our own TCP has no peer"),
        (
            at("A") + OWN_FLOW.replace("file", "request-response").replace(f', size = "{400_000} bytes"', ""),
            "workload",
            "bulk",
        ),
        (at("A") + OWN_FLOW + 'fec = "xor"\n', "fec", "no error correction"),
        (OWN_FLOW + 'stack = "rfc"\n', "stack", 'tcp = "own"'),
    ],
)
def test_flows_that_our_own_tcp_does_not_support_are_refused(
    anabranch: Call, tmp_path: Path, changes: str, where: str, message: str
) -> None:
    told = refused(anabranch, tmp_path, OWN_PATH + changes)
    assert where in told
    assert message in told


INTERFACES = """
duration = "1 s"
[link.path]
between = ["left", "right"]
rate = "20 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
[host.left]
attach = "interface:el"
[host.right]
attach = "interface:er"
[flow.all]
from = "left"
to = "right"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("interface:el", "interface:nowhere", ":9:10: the interface `nowhere` must be there"),
        ("interface:el", "interface:er", ":11:10: `er` is the interface of `left` already"),
        ("interface:er", "interface:lo", ":11:10: `lo` is a loopback interface"),
        (
            '[host.right]\nattach = "interface:er"\n',
            "",
            "`left` is attached to an interface and the other end of `all` is",
        ),
    ],
)
def test_interfaces_that_cannot_be_attached_are_refused(
    anabranch: Call, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert message in refused(anabranch, tmp_path, INTERFACES.replace(old, new))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "live", "--trace", "ack"], 'there is no trace "ack"'),
        (["--engine", "live", "--trace", "off", "--why"], "--trace off makes none"),
        (["--engine", "sim", "--trace", "acks"], "--engine sim does not have"),
        (["--allow-tainted"], "--allow-tainted is for live runs"),
    ],
)
def test_unsuitable_options_of_live_runs_are_refused(
    anabranch: Call, tmp_path: Path, options: list[str], message: str
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW)
    done = anabranch("run", file, *options)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_a_validation_refuses_a_wrong_file_before_any_run(anabranch: Call, tmp_path: Path) -> None:
    right, wrong, out = tmp_path / "right.toml", tmp_path / "wrong.toml", tmp_path / "out"
    right.write_text(PATH + FLOW)
    wrong.write_text('duration = "1 s"\n[link.path]\nbetween = ["A"]\n')
    done = anabranch("validate", "--json", right, wrong, "--out", out)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {wrong}:3:")
    assert not out.exists()
