"""``anabranch script``: scripts that pass and that fail, wrong scripts, and unsupported parts of packetdrill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.script import outcome

from .command import Call

ROOT = Path(__file__).resolve().parents[2]
OPENING = """\
--mtu=1040
0    `sysctl -q net.ipv4.tcp_timestamps=0`
+0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0   listen(3, 1) = 0
+0   < S 0:0(0) win 32792 <mss 1000,sackOK>
+0   > S. 0:0(0) ack 1 <...>
+.1  < . 1:1(0) ack 1 win 30000
+0   accept(3, ..., ...) = 4
+0   write(4, ..., 2000) = 2000
"""
PASSING = f"{OPENING}+0   > . 1:1001(1000) ack 1\n+0   > P. 1001:2001(1000) ack 1\n+.1  < . 1:1(0) ack 2001 win 30000\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("s.pkt")


def test_a_script_passes(anabranch: Call, script: Path) -> None:
    script.write_text(PASSING)
    done = anabranch("script", script)
    assert (done.status, done.out, done.err) == (0, "s.pkt: passes (profile rfc)\n", "")


@pytest.mark.parametrize("stack", ["linux", "linux-6.12", "rfc"])
def test_the_stack_replaces_the_scripts_own(anabranch: Call, script: Path, stack: str) -> None:
    script.write_text(f"--stack=bsd44-lite\n{PASSING}")
    done = anabranch("script", script, "--stack", stack)
    assert (done.status, done.out) == (0, f"s.pkt: passes (profile {stack})\n")


LINUX = """\
`../init.sh`
0    socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0   listen(3, 1) = 0
+0   < S 0:0(0) win 32792 <mss 1000,sackOK>
+0   > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
+.1  < . 1:1(0) ack 1 win 30000
+0   accept(3, ..., ...) = 4
+0   write(4, ..., 2000) = 2000
+0   > P. 1:2001(2000) ack 1
"""


def test_an_init_script_is_read_from_the_scripts_folder(anabranch: Call, tmp_path: Path) -> None:
    folder = tmp_path / "sack"
    folder.mkdir()
    (folder / "s.pkt").write_text(LINUX)
    (tmp_path / "init.sh").write_text("#!/bin/sh\nsysctl -q net.ipv4.tcp_timestamps=0 # none\n")
    done = anabranch("script", folder / "s.pkt")
    assert (done.status, done.out) == (0, f"{folder / 's.pkt'}: passes (profile linux)\n")
    (tmp_path / "init.sh").unlink()
    done = anabranch("script", folder / "s.pkt")
    assert done.status == 2
    assert "s.pkt:1:1: the init script `../init.sh` is missing" in done.err


def test_a_script_that_cannot_be_run_does_not_stop_the_others(anabranch: Call, script: Path) -> None:
    script.write_text("+0 splice(1) = 3\n")
    Path("t.pkt").write_text(PASSING)
    done = anabranch("script", script, "t.pkt")
    assert done.status == 2
    assert done.out.startswith("s.pkt:1:4: cannot be run\n  packetdrill's call `splice` is not supported")
    assert done.out.endswith("t.pkt: passes (profile rfc)\n\n1 of 2 scripts pass\n")
    assert done.err.startswith("error: 1 of 2 scripts cannot be run")
    done = anabranch("script", script, "t.pkt", "--json")
    found = json.loads(done.out)
    assert [one["outcome"] for one in found] == ["invalid", "agrees"]
    Path("t.pkt").write_text(PASSING.replace("1:1001(1000)", "1:501(500)"))
    assert anabranch("script", script, "t.pkt").status == 1


def test_a_difference_shows_both_packets(anabranch: Call, script: Path) -> None:
    script.write_text(PASSING.replace("1:1001(1000)", "1:501(500)"))
    done = anabranch("script", script)
    assert done.status == 1
    assert done.err == "error: the script does not pass\n"
    assert (
        done.out
        == """\
s.pkt:10:1: fails (profile rfc)
                     expected  actual
    flags            .         .
    sequence number  1         1
  > length           500       1000
    acknowledgment   1         1
    window                     65535
    ECN field                  noecn
    time             at 0.1 s  at 0.1 s
"""
    )


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("+0   > . 1:", "+.2  > . 1:", "  > time             at 0.3 s  at 0.1 s\n"),
        (
            "+.1  < . 1:1(0) ack 2001",
            "+9   < . 1:1(0) ack 2001",
            "  > packet  no packet  > . 1:1001(1000) ack 1 win 65535\n",
        ),
        ("= 2000\n", "= 1999\n", "  > returned value  1999      2000\n"),
        (
            "ack 2001 win 30000\n",
            "ack 2001 win 30000\n+0 %{ assert tcpi_snd_cwnd == 3 }%\n",
            "  > assertion  tcpi_snd_cwnd == 3  tcpi_snd_cwnd is 10\n",
        ),
        (
            "ack 2001 win 30000\n",
            "ack 2001 win 30000\n+.1~+.2 > . 2001:2001(0) ack 1\n",
            "  > packet  > . 2001:2001(0) ack 1   no packet\n  > time    between 0.3 s and 0.4 s  until 0.4 s\n",
        ),
    ],
)
def test_other_differences(anabranch: Call, script: Path, right: str, wrong: str, told: str) -> None:
    assert right in PASSING
    script.write_text(PASSING.replace(right, wrong))
    done = anabranch("script", script)
    assert done.status == 1
    assert told in done.out, done.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "error: s.pkt:1:1: the script is empty: expected an event, such as `+0 < S 0:0(0) win 1000`\n"),
        (
            "+0 soket() = 3\n",
            "error: s.pkt:1:4: there is no call `soket`; expected one of socket, bind, listen, accept, connect, read, "
            "write, close, shutdown, setsockopt, getsockopt, send, sendto, fcntl, "
            "sendmsg, writev, recv, recvfrom, recvmsg, readv, poll, epoll_create, epoll_create1, "
            "epoll_ctl, epoll_wait, ioctl, accept4; nearest is `socket`\n"
            "  1 | +0 soket() = 3\n    |    ^\n",
        ),
        (
            "--stack=linx\n+0 < S 0:0(0) win 9\n",
            "error: s.pkt:1:3: there is no stack `linx`; expected one of linux-6.18, linux-6.12, rfc, ns3-2018, "
            "ns2-sack1, linux-2.6.35, windows-7, bsd44-lite\n  1 | --stack=linx\n    |   ^\n",
        ),
        ("+0 < S 0:1(0)\n", "error: s.pkt:1:8: 0:1 spans 1 octets, not 0\n  1 | +0 < S 0:1(0)\n    |        ^\n"),
    ],
)
def test_a_mistake_has_its_place(anabranch: Call, script: Path, text: str, told: str) -> None:
    script.write_text(text)
    done = anabranch("script", script)
    assert (done.status, done.out, done.err) == (2, "", told)


UNSUPPORTED = {
    "--ip_version=ipv6\n+0 < S 0:0(0) win 9": (1, "packetdrill's `--ip_version=ipv6` is not supported; expected ipv4"),
    "// A test\n`iptables -F`\n": (
        2,
        "packetdrill's command `iptables` is not supported; expected `sysctl -q NAME=VALUE`",
    ),
    "\n+0 pipe([3, 4]) = 0\n": (2, "packetdrill's call `pipe` is not supported; expected one of socket"),
    "+0 send(3, ..., 9, MSG_OOB) = 9\n": (
        1,
        "packetdrill's flags 0x1 of this call are not supported; expected some of",
    ),
    "+0 < udp (100)\n": (1, "packetdrill's `udp` packets are not supported: expected a TCP segment"),
    "+0 < icmp time_exceeded\n": (1, "packetdrill's `icmp time_exceeded` is not supported"),
    "+0 < S 0:0(0) win 9 <md5 abcd>\n": (
        1,
        "packetdrill's option `md5` is not supported by name (`raw HEX` writes its octets)",
    ),
    "+0 %{ import sys }%\n": (1, "packetdrill's Python code (`import`) is not supported"),
}


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_an_unsupported_part_of_packetdrill_is_named(anabranch: Call, script: Path, text: str) -> None:
    line, message = UNSUPPORTED[text]
    script.write_text(text)
    done = anabranch("script", script)
    assert done.status == 2
    assert done.err.startswith(f"error: s.pkt:{line}:"), done.err
    assert message in done.err


def test_a_wrong_stack_is_refused(anabranch: Call, script: Path) -> None:
    script.write_text(PASSING)
    done = anabranch("script", script, "--stack", "linx")
    assert done.status == 2
    assert done.err.startswith("error: there is no stack `linx`; expected one of linux-6.18")
    done = anabranch("script", script, "--stack", "linux", "--engine", "kernel")
    assert (done.status, done.err) == (
        2,
        "error: --stack linux is of --engine sim: a kernel has its own stack\n  leave one of them out\n",
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "No such file or directory"), (b"\xff\n", "this is no UTF-8 text"), (b"\0", "nothing in a script begins")],
)
def test_a_file_that_is_no_script(anabranch: Call, script: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        script.write_bytes(content)
    done = anabranch("script", script)
    assert done.status == 2
    assert told in done.err


def test_the_document(anabranch: Call, script: Path) -> None:
    script.write_text(PASSING.replace("1:1001(1000)", "1:501(500)"))
    other = script.with_name("other.pkt")
    other.write_text(PASSING)
    done = anabranch("script", script, other, "--json")
    assert done.status == 1
    failed, passed = json.loads(done.out)
    assert (failed["outcome"], failed["line"], failed["column"], failed["runs"]) == ("differs", 10, 1, 1)
    assert [one["name"] for one in failed["fields"] if one["differs"]] == ["length"]
    assert (passed["outcome"], passed["message"], passed["fields"]) == ("agrees", None, [])


def test_several_scripts_are_counted(anabranch: Call) -> None:
    files = sorted((ROOT / "tests/scripts/recovery").glob("*.pkt"))
    done = anabranch("script", *files)
    assert done.status == 0, done.out
    assert done.out.endswith(f"\n{len(files)} of {len(files)} scripts pass\n")


def test_from_python() -> None:
    found = outcome.on_profile(PASSING, "s.pkt", "linux")
    assert (found.outcome, found.stack, found.is_failure) == (outcome.PASSES, "linux", False)
    with pytest.raises(UserError, match=r"s\.pkt:1:4: there is no call"):
        outcome.on_profile("+0 soket() = 3", "s.pkt")


def test_the_script_of_the_guide(anabranch: Call, script: Path) -> None:
    """It passes and fails as the page shows."""
    page = (ROOT / "docs/guides/scripts.md").read_text("utf-8")
    file = script.with_name("loss.pkt")
    file.write_text(page.split('```text title="loss.pkt"\n')[1].split("```")[0])
    done = anabranch("script", file)
    assert (done.status, done.out) == (0, "loss.pkt: passes (profile rfc)\n")
    done = anabranch("script", file, "--stack", "bsd44-lite")
    assert done.status == 1
    assert f"```text\n{done.out}{done.err}```" in page, done.out + done.err


EXAMPLES = (
    "0.2 < . 1:1(0) ack 1 win 100",
    "+.2~+.3 > . 1:1001(1000) ack 1",
    "* > R 1:1(0)",
    "+0 > S. 0:0(0) ack 1 <...>",
    "+0 < [ce] P. 1:1001(1000) ack 1 win 100 <ECN e0b 1 ceb 1001 e1b 1>",
    "+0 < [bad-checksum] . 1:1(0) ack 1 win 100 <raw fd04f989>",
    "+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)",
    "+0 shutdown(4, SHUT_WR) = 0",
    "+0 setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
    "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0",
    "+0 %{ assert tcpi_ca_state == TCP_CA_Recovery; assert tcpi_snd_ssthresh == 5 }%",
    "0 `sysctl -q net.ipv4.tcp_sack=0`",
)


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_guide_is_in_the_language(anabranch: Call, script: Path, line: str) -> None:
    """An example alone is a script that is read, and then fails or lacks a descriptor."""
    script.write_text(f"{line}\n")
    done = anabranch("script", script)
    assert done.status in (0, 1) or "no call above returned the descriptor" in done.err, done.err


def test_the_guides_socket_option_works_before_listen(anabranch: Call, script: Path) -> None:
    option = "+0   setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n"
    script.write_text(PASSING.replace("+0   listen", f"{option}+0   listen"))
    assert anabranch("script", script).status == 0


@pytest.mark.parametrize("cut", range(0, len(PASSING), 7))
def test_a_script_that_is_cut_ends_with_a_status(anabranch: Call, script: Path, cut: int) -> None:
    script.write_text(PASSING[:cut])
    done = anabranch("script", script)
    assert done.status in (0, 1, 2)
    assert "a fault of anabranch" not in done.err
