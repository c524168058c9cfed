"""Conversion of tc command lines: round trips, notes, bad input."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.convert import Options, convert_bytes
from anabranch.convert.netem import OPTIONS
from anabranch.convert.qdiscs import PARAMETERS
from anabranch.errors import UserError

from .command import Call

law = settings(deadline=None, max_examples=50)
"""No deadline: a time limit on a busy machine is meaningless."""


def read(script: str) -> tuple[Scenario, tuple[str, ...]]:
    converted = convert_bytes("link.sh", script.encode(), Path(), Options(source="netem", target="scenario"))
    return Scenario.from_text(converted.content.decode()), converted.notes


def written(scenario: Scenario) -> tuple[str, tuple[str, ...]]:
    converted = convert_bytes("link.toml", scenario.text.encode(), Path(), Options(source="scenario", target="netem"))
    return converted.content.decode(), converted.notes


def link(scenario: Scenario) -> dict[str, Any]:
    (found,) = scenario.resolve()["resolved_scenario"]["link"].values()
    return {direction: found[direction] for direction in ("forward", "reverse")}


def path(forward: dict[str, Any], reverse: dict[str, Any] | None = None) -> Scenario:
    scenario = Scenario(duration="1 s").link("path", between=("A", "B"), forward=forward, reverse=reverse or {})
    return scenario.flow("main", source="A", target="B")


def direction(script: str) -> dict[str, Any]:
    scenario, notes = read(script)
    assert notes == ()
    forward: dict[str, Any] = link(scenario)["forward"]
    return forward


durations = st.integers(1, 500_000).map(lambda us: f"{us} us")
rates = st.integers(8, 10_000_000).map(lambda k: f"{k} kbit/s")
ratios = st.integers(0, 1_000_000).map(lambda millionths: millionths / 1e6)
drop_tails = st.one_of(
    st.integers(1, 100_000).map(lambda n: {"kind": "drop-tail", "limit": f"{n} packets"}),
    st.integers(1500, 10_000_000).map(lambda n: {"kind": "drop-tail", "limit": f"{n} bytes"}),
    st.just({"kind": "drop-tail", "limit": "unlimited"}),
)
delay_queues = st.one_of(
    st.builds(lambda n: {"kind": "codel", "limit": f"{n} packets", "ecn": n % 2 == 0}, st.integers(1, 9999)),
    st.builds(
        lambda n, target: {"kind": "fq-codel", "queues": n, "target": f"{target} ms"},
        st.integers(1, 65536),
        st.integers(1, 100),
    ),
    st.builds(lambda a: {"kind": "pie", "alpha": a / 16, "ecn": True, "derandomize": True}, st.integers(0, 32)),
    st.builds(
        lambda n, framing, isolation, diffserv: {
            "kind": "cake", "rate": f"{n} kbit/s", "rtt": f"{n} us", "overhead": n % 320 - 64, "mpu": n % 256,
            "framing": framing, "isolation": isolation, "diffserv": diffserv,
        },
        st.integers(1, 9999), st.sampled_from(["noatm", "atm", "ptm"]),
        st.sampled_from(["flowblind", "dual-srchost", "triple-isolate"]),
        st.sampled_from(["besteffort", "diffserv3", "diffserv4"]),
    ),
    st.builds(
        lambda n, power, p: {
            "kind": "red", "limit": f"{30 * n} bytes", "min_threshold": f"{n} bytes", "max_threshold": f"{3 * n} bytes",
            "weight": 2.0**-power, "max_probability": p, "scale_by_size": False, "idle_packet": "1000 bytes",
        },
        st.integers(3000, 100_000), st.integers(1, 9), st.sampled_from([0.02, 0.1, 1.0]),
    ),
)  # fmt: skip
losses = st.one_of(
    ratios.map(lambda p: {"kind": "bernoulli-loss", "rate": p}),
    st.builds(
        lambda p, r, h, k: {"kind": "gilbert-elliott", "p": p, "r": r, "h": h, "k": k}, ratios, ratios, ratios, ratios
    ).filter(lambda loss: loss["p"] + loss["r"] > 0),
)
jitters = st.builds(
    lambda ms, reorder: {
        "kind": "jitter", "distribution": "normal", "mean": f"{3 * ms} ms", "deviation": f"{ms} ms", "reorder": reorder,
    },
    st.integers(1, 20), st.booleans(),
)  # fmt: skip
sides = st.fixed_dictionaries(
    {"delay": durations, "rate": rates},
    optional={
        "queue": drop_tails | delay_queues,
        "impair": st.lists(losses, max_size=1),
        "held_limit": st.integers(1, 100_000).map(lambda n: f"{n} packets"),
    },
)


@law
@given(sides, sides)
def test_a_link_survives_a_netem_script(forward: dict[str, Any], reverse: dict[str, Any]) -> None:
    scenario = path(forward, reverse)
    script, lost = written(scenario)
    again, _ = read(script)
    assert not lost
    zero = {"kind": "bernoulli-loss", "rate": 0.0}
    expected = link(scenario)
    for side in expected.values():
        side["impair"] = [i for i in side["impair"] if i != zero]
    assert link(again) == expected


@law
@given(rates, jitters)
def test_normal_jitter_survives_with_or_without_order(rate: str, jitter: dict[str, Any]) -> None:
    for queue in ("20 packets", "30000 bytes"):
        forward = {
            "rate": rate, "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": queue}, "impair": [jitter],
        }  # fmt: skip
        scenario = path(forward)
        script, lost = written(scenario)
        again, _ = read(script)
        assert not lost
        assert link(again)["forward"] == link(scenario)["forward"]


@pytest.mark.parametrize(
    ("arguments", "forward"),
    [
        ("netem delay 20ms", {"delay": "20 ms", "held_limit": "1000 packets"}),
        ("netem delay 100", {"delay": "100 us", "held_limit": "1000 packets"}),
        ("netem latency 1.5s", {"delay": "1.5 s", "held_limit": "1000 packets"}),
        ("netem loss 0.1%", {"impair": [{"kind": "bernoulli-loss", "rate": 0.001}]}),
        ("netem loss random 10", {"impair": [{"kind": "bernoulli-loss", "rate": 0.1}]}),
        ("netem loss gemodel 1%", {"impair": [{"kind": "gilbert-elliott", "p": 0.01, "r": 0.99}]}),
        (
            "netem loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
            {"impair": [{"kind": "gilbert-elliott", "p": 0.01, "r": 0.1, "h": 0.3, "k": 0.999}]},
        ),
        ("netem loss state 1% 20%", {"impair": [{"kind": "four-state-loss", "p13": 0.01, "p31": 0.2}]}),
        (
            "netem duplicate 1% corrupt 2%",
            {"impair": [{"kind": "duplicate", "rate": 0.01}, {"kind": "corrupt", "rate": 0.02}]},
        ),
        (
            "netem delay 10ms reorder 25%",
            {"impair": [{"kind": "jitter", "distribution": "table", "table": ["0 s", "10 ms", "10 ms", "10 ms"],
                         "reorder": True}], "held_limit": "1000 packets"},
        ),
        (
            "netem delay 20ms 5ms distribution pareto",
            {"delay": "10 ms", "impair": [{"kind": "jitter", "distribution": "pareto", "mean": "10 ms", "shape": 3.0,
                                           "reorder": True}], "held_limit": "1000 packets"},
        ),
        (
            "netem rate 12mbit delay 10ms limit 110",
            {"rate": "12 Mbit/s", "delay": "10 ms", "held_limit": "110 packets"},
        ),
        ("netem rate 1mbit delay 10ms", {"rate": "1 Mbit/s", "delay": "10 ms", "held_limit": "1000 packets"}),
        # Without a delay all packets except the one in transmission are queued.
        ("netem rate 1mbit", {"rate": "1 Mbit/s", "queue": {"kind": "drop-tail", "limit": "999 packets"}}),
        # `tc` reads the limit as a size: 10 × 1024, and a megabit of 8 bits each.
        ("netem delay 5ms limit 10k", {"delay": "5 ms", "held_limit": "10240 packets"}),
        ("netem delay 5ms limit 1000mbit", {"delay": "5 ms", "held_limit": "131072000 packets"}),
        ("netem delay 5ms limit 1e3", {"delay": "5 ms", "held_limit": "1000 packets"}),
        ("netem delay 5ms limit 0x10", {"delay": "5 ms", "held_limit": "16 packets"}),
        ("netem delay 5ms limit 4294967295", {"delay": "5 ms"}),
        ("netem delay 1e1ms rate 1.5Mbit", {"delay": "10 ms", "rate": "1500 kbit/s", "held_limit": "1000 packets"}),
        ("pfifo limit 2k", {"queue": {"kind": "drop-tail", "limit": "2048 packets"}}),
        # `tc` sends the kernel these limits: the latency's bytes, and the bucket of 1600 or 2048.
        (
            "tbf rate 1mbit burst 1600 latency 400ms",
            {"rate": "1 Mbit/s", "queue": {"kind": "drop-tail", "limit": "51600 bytes"}},
        ),
        (
            "tbf rate 1mbit buffer 2kb lat 400ms",
            {"rate": "1 Mbit/s", "queue": {"kind": "drop-tail", "limit": "52048 bytes"}},
        ),
        (
            "tbf rate 1mbps burst 1600 limit 10kb",
            {"rate": "8 Mbit/s", "queue": {"kind": "drop-tail", "limit": "10240 bytes"}},
        ),
        ("pfifo limit 50", {"queue": {"kind": "drop-tail", "limit": "50 packets"}}),
        ("bfifo limit 64kb", {"queue": {"kind": "drop-tail", "limit": "65536 bytes"}}),
        ("codel limit 100 target 4ms interval 80ms ecn",
         {"queue": {"kind": "codel", "limit": "100 packets", "target": "4 ms", "interval": "80 ms", "ecn": True}}),
        ("fq_codel limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64",
         {"queue": {"kind": "fq-codel", "quantum": "1514 bytes", "memory_limit": "33554432 bytes"}}),
        ("pie target 20ms tupdate 16ms alpha 2 beta 20",
         {"queue": {"kind": "pie", "target": "20 ms", "update_interval": "16 ms", "alpha": 0.125, "beta": 1.25,
                    "derandomize": True}}),
        ("cake bandwidth 100Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 50ms ptm "
         "overhead 38 mpu 84",
         {"queue": {"kind": "cake", "rate": "100 Mbit/s", "rtt": "50 ms", "framing": "ptm", "overhead": 38,
                    "mpu": 84}}),
        ("cake bandwidth 5mbit besteffort dual-srchost metro overhead 10 ether-vlan ether-vlan pppoe-ptm",
         {"queue": {"kind": "cake", "rate": "5 Mbit/s", "diffserv": "besteffort", "isolation": "dual-srchost",
                    "rtt": "10 ms", "framing": "ptm", "overhead": 48}}),
        ("cake bandwidth 5mbit unlimited ethernet conservative",
         {"queue": {"kind": "cake", "framing": "atm", "overhead": 48, "mpu": 84}}),
        ("red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn probability 0.1",
         {"queue": {"kind": "red", "limit": "400000 bytes", "min_threshold": "30000 bytes", "ecn": True,
                    "max_threshold": "90000 bytes", "max_probability": 0.1, "weight": 2.0**-5, "hard_drop": False,
                    "scale_by_size": False, "idle_packet": "1000 bytes"}}),
    ],
)  # fmt: skip
def test_each_parameter_has_a_key(arguments: str, forward: dict[str, Any]) -> None:
    expected = path(forward, {"delay": "10 us"})
    assert direction(f"tc qdisc add dev eth0 root {arguments}\n") == link(expected)["forward"]


def test_the_output_of_tc_show_is_read_with_its_statistics() -> None:
    scenario, _ = read(
        "qdisc noqueue 0: dev lo root refcnt 2 \n"
        "qdisc netem 1: dev eth0 root refcnt 2 limit 1000 delay 20ms loss 1%\n"
        " Sent 1200 bytes 10 pkt (dropped 0, overlimits 0 requeues 0)\n"
        " backlog 0b 0p requeues 0\n"
        "qdisc tbf 2: dev eth0 parent 1:1 rate 10Mbit burst 3000b lat 10ms \n"
        "qdisc fq_codel 3: dev eth0 parent 2:1 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn\n"
    )
    forward = link(scenario)["forward"]
    assert (forward["rate"], forward["delay"]) == ("10 Mbit/s", "20 ms")
    assert forward["queue"]["kind"] == "fq-codel"
    assert forward["impair"] == [{"kind": "bernoulli-loss", "rate": 0.01}]


def test_overhead_of_htb_is_noted() -> None:
    _, notes = read(
        "tc qdisc add dev e root handle 1: htb default 1\n"
        "tc class add dev e parent 1: classid 1:1 htb rate 1mbit overhead 14 linklayer adsl\n"
    )
    assert [word in note for word, note in zip(("overhead", "linklayer"), notes, strict=True)] == [True, True]


def test_cake_shapes_instead_of_the_link() -> None:
    """Below a netem with a higher rate CAKE is the queue; below one with a lower rate CAKE has no backlog."""
    netem = "tc qdisc add dev e root handle 1: netem delay 10ms rate {}\n"
    above = netem + "tc qdisc add dev e parent 1:1 cake bandwidth 5mbit\n"
    forward = link(read(above.format("10mbit"))[0])["forward"]
    assert (forward["rate"], forward["queue"]["kind"], forward["queue"]["rate"]) == ("10 Mbit/s", "cake", "5 Mbit/s")
    scenario, notes = read(above.format("4mbit"))
    assert link(scenario)["forward"]["queue"]["kind"] == "drop-tail"
    assert any("never has a queue" in note for note in notes)


NETEM = "tc qdisc add dev e {} netem delay 100ms limit 50\n"
TBF = "tc qdisc add dev e {} tbf rate 1mbit burst 2000 limit 20000\n"
HTB = "tc qdisc add dev e {0} htb default 1\ntc class add dev e parent {1} classid {1}1 htb rate 1mbit\n"


@pytest.mark.parametrize(
    ("script", "queue", "held"),
    [
        # The limit counts the backlog of a qdisc below.
        (NETEM.format("root handle 1:") + TBF.format("parent 1:1"), "20 kB", "50 packets"),
        # A netem below replaces the shaper's queue.
        (TBF.format("root handle 1:") + NETEM.format("parent 1:1"), "unlimited", "50 packets"),
        (HTB.format("root handle 1:", "1:") + NETEM.format("parent 1:1"), "unlimited", "50 packets"),
        (HTB.format("root handle 1:", "1:"), "1000 packets", None),
        (NETEM.format("root handle 1:") + HTB.format("parent 1:1 handle 2:", "2:"), "1000 packets", "50 packets"),
        (
            NETEM.format("root handle 1:")
            + TBF.format("parent 1:1 handle 2:")
            + "tc qdisc add dev e parent 2:1 pfifo limit 7\n",
            "7 packets",
            "50 packets",
        ),
    ],
)
def test_netems_limit_counts_the_shapers_backlog(script: str, queue: str, held: str | None) -> None:
    forward = direction(script)
    assert (forward["rate"], forward["queue"]["limit"], forward.get("held_limit")) == ("1 Mbit/s", queue, held)


def test_a_qdisc_below_netems_rate_has_no_queue() -> None:
    scenario, notes = read(
        "tc qdisc add dev e root handle 1: netem delay 9ms rate 1mbit limit 50\n"
        "tc qdisc add dev e parent 1:1 fq_codel\n"
    )
    forward = link(scenario)["forward"]
    assert (forward["queue"]["kind"], forward["held_limit"]) == ("drop-tail", "50 packets")
    assert notes == ("link.sh:2:31: a qdisc below netem's rate, which never has a queue",)


def test_a_limit_that_never_applies_is_noted(anabranch: Call, tmp_path: Path) -> None:
    script = tmp_path / "link.sh"
    for arguments, noted in (("limit 100 loss 1%", True), ("limit 1000 loss 1%", False), ("limit 9 rate 1mbit", False)):
        script.write_text(f"tc qdisc add dev eth0 root netem {arguments}\n")
        done = anabranch("convert", script, "--out", tmp_path / "out.toml", "--strict", "--force")
        assert (done.status, "limit of 100 packets never applies" in done.err) == (0, noted)


def test_the_second_interface_is_the_reverse_direction() -> None:
    scenario, _ = read("tc qdisc add dev a root netem delay 10ms; tc qdisc add dev b root netem delay 30ms")
    assert [link(scenario)[side]["delay"] for side in ("forward", "reverse")] == ["10 ms", "30 ms"]


def test_one_name_in_two_namespaces_is_two_interfaces() -> None:
    scenario, notes = read(
        "if sudo ip netns exec a tc qdisc add dev eth0 root netem delay 10ms 2>/dev/null; then echo tc; fi\n"
        "ip netns exec b /sbin/tc -s qdisc add dev eth0 root netem delay 30ms\n"
    )
    assert ([link(scenario)[side]["delay"] for side in ("forward", "reverse")], notes) == (["10 ms", "30 ms"], ())


def test_one_name_with_two_namespace_options_is_two_interfaces() -> None:
    scenario, notes = read(
        "tc -n a qdisc add dev eth0 root netem delay 10ms\ntc -s -netns b qdisc add dev eth0 root netem delay 30ms\n"
    )
    assert ([link(scenario)[side]["delay"] for side in ("forward", "reverse")], notes) == (["10 ms", "30 ms"], ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_continued_command_is_read_to_its_end(end: str) -> None:
    """``tc -s`` prints lines that begin with the same words."""
    lines = ("tc qdisc add dev e root netem delay 9ms \\", "    limit 50 \\", "    rate 5mbit", "  rate 7bit 2pps", "")
    assert direction(end.join(lines)) == direction("tc qdisc add dev e root netem delay 9ms limit 50 rate 5mbit\n")


def test_a_batch_file_needs_no_tc(anabranch: Call, tmp_path: Path) -> None:
    batch = tmp_path / "batch"
    batch.write_text("# tc -batch FILE\nqdisc add dev e root netem delay 10ms rate 1mbit\nqdisc del dev f root\n")
    done = anabranch("convert", batch, "--out", tmp_path / "link.toml")
    assert (done.status, done.err) == (0, f"wrote {tmp_path / 'link.toml'}\n")
    assert link(Scenario.from_file(tmp_path / "link.toml"))["forward"]["rate"] == "1 Mbit/s"


def test_the_rate_of_an_htb_class_is_the_links_rate() -> None:
    scenario, _ = read(
        "tc qdisc del dev eth0 root\n"
        "tc qdisc add dev eth0 root handle 1: htb default 10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n"
        "tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 10ms\n"
    )
    forward = link(scenario)["forward"]
    assert (forward["rate"], forward["delay"]) == ("5 Mbit/s", "10 ms")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("netem delay 10ms 1ms 25%", "correlation of the delay"),
        ("netem loss 1% 25%", "correlation of losses"),
        ("netem delay 10ms reorder 25% gap 5", "gap"),
        ("netem delay 10ms 1ms distribution paretonormal", "paretonormal"),
        ("netem rate 1mbit 20", "overhead"),
        ("netem rate 1mbit -14", "overhead"),
        ("tbf rate 1mbit burst 100kb limit 10000", "token bucket"),
        ("tbf rate 1mbit burst 1600 limit 10000 peakrate 2mbit mtu 1500", "peakrate"),
        ("cake bandwidth 20mbit ack-filter", "ACK filter"),
        ("cake bandwidth 20mbit diffserv8", "diffserv8"),
        ("pfifo_fast", "bands"),
        ("netem delay 10ms slot 20ms", "slots"),
    ],
)
def test_features_that_a_link_lacks_are_noted_or_refused_by_strict(
    anabranch: Call, tmp_path: Path, arguments: str, word: str
) -> None:
    script, out = tmp_path / "link.sh", tmp_path / "out.toml"
    script.write_text(f"tc qdisc add dev eth0 root {arguments}\n")
    done = anabranch("convert", script, "--out", out, "--strict")
    assert (done.status, out.exists()) == (2, False)
    assert word in done.err
    done = anabranch("convert", script, "--out", out)
    assert (done.status, out.exists()) == (0, True)
    assert word in done.err


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ('impair = [{ kind = "jitter", mean = "5 ms", every = "1 s" }]', "every"),
        ('impair = [{ kind = "jitter", mean = "5 ms" }]', "exponential"),
        (
            'forward.rate = "unlimited"\nimpair = [{ kind = "jitter", distribution = "normal", mean = "5 ms" }]',
            "overtake",
        ),
        ('impair = [{ kind = "loss-list", packets = [3] }]', "loss-list"),
        ('impair = [{ kind = "bernoulli-loss", rate = 0.1 }, { kind = "bernoulli-loss", rate = 0.1 }]', "a second"),
        ('impair = [{ kind = "corrupt", bit_error_rate = 1e-6 }]', "by bit"),
        ('queue = { kind = "drr" }', "drr"),
        ('queue = { kind = "codel", limit = "1 bdp" }', "limit in bytes"),
        ('queue = { kind = "red", gentle = true }', "gentle"),
        ('queue = { kind = "drop-tail", reorder = { kind = "interval", interval = 4 } }', "reorder"),
        ('forward.delay = "1 ps"', "whole nanoseconds"),
        ("up = false", "up"),
        ('[[at]]\ntime = "1 s"\nset = { "link.path.rate" = "1 Mbit/s" }', "[[at]]"),
    ],
)
def test_features_that_netem_lacks_are_noted(anabranch: Call, tmp_path: Path, key: str, word: str) -> None:
    scenario = tmp_path / "link.toml"
    flow = '[flow.main]\nfrom = "A"\nto = "B"\n'
    base = 'duration = "2 s"\n[link.path]\nbetween = ["A", "B"]\nrate = "10 Mbit/s"\ndelay = "10 ms"\n'
    scenario.write_text(f"{base}{key}\n{flow}")
    done = anabranch("convert", scenario, "--to", "netem")
    assert done.status == 0
    assert word in done.err
    assert anabranch("convert", scenario, "--to", "netem", "--strict").status == 2


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("tc qdisc add dev eth0 root netem delya 10ms",
         "1:34: 'delya' is not a parameter of netem\n"
         "  1 | tc qdisc add dev eth0 root netem delya 10ms\n"
         "    |                                  ^\n"
         '  did you mean "delay"?'),
        ("\ntc qdisc add dev eth0 root netm delay 10ms", '2:28: \'netm\' is not a qdisc that a scenario has'),
        ("tc qdisc add dev eth0 root netem delay 10mz", "1:40: '10mz' is not a time (10ms, 1.5s, 200us)"),
        ("tc qdisc add dev eth0 root netem loss 101%", "1:39: '101%' is too much: at most 100% was expected"),
        ("tc qdisc add dev eth0 root netem delay", "1:34: nothing follows 'delay'; a time was expected"),
        ("tc qdisc add dev eth0 root netem rate 0", "1:39: '0' is no rate; at least 1bit was expected"),
        ("tc qdisc add dev eth0 root netem reorder 5%", "1:34: reordering without a delay has no effect"),
        ("tc qdisc add dev eth0 root netem gap 5 delay 9ms", "1:34: tc refuses a gap without `reorder PERCENT`"),
        ("tc qdisc add root netem delay 5ms", "1:19: no interface for netem; `dev NAME` was expected"),
        ("tc qdisk add dev eth0 root netem", "1:4: 'qdisk' is not an object of tc"),
        ('tc qdisc add dev "eth0 root netem', '1:18: " is not closed'),
        ("# nothing\n", "2:1: there is no qdisc"),
        ("tc qdisc add dev eth0 root tbf rate 1mbit burst 1600", "1:28: tbf has no limit"),
        ("tc qdisc add dev eth0 root netem limit 0", "1:40: netem with a limit of 0 drops every packet; 1 or more"),
        ("tc qdisc add dev eth0 root netem limit 1kib", "1:40: '1kib' is not a number of packets (1000, 10k)"),
        ("tc qdisc add dev eth0 root netem limit 5gb", "1:40: '5gb' is too much"),
        ("tc qdisc add dev eth0 root codel limit 10k", "1:40: '10k' is not a whole number"),
    ],
)  # fmt: skip
def test_bad_input_has_a_location_and_the_nearest_name(
    anabranch: Call, tmp_path: Path, script: str, message: str
) -> None:
    file = tmp_path / "link.sh"
    file.write_text(script)
    done = anabranch("convert", file, "--from", "netem")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {file}:{message}")


@pytest.mark.parametrize(
    "arguments",
    [
        "netem limit {}", "netem delay {}ms", "netem rate {}mbit", "netem loss {}%",
        "netem delay 1ms reorder 5% gap {}", "netem rate 1mbit {}", "pfifo limit {}", "codel limit {}",
        "tbf rate {}mbit burst 1600 limit 10000",
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("digits", ["\u0661\u0662", "\u0967", "\uff15", "1_0"])
def test_non_ascii_digits_are_refused(arguments: str, digits: str) -> None:
    with pytest.raises(UserError):
        read(f"tc qdisc add dev eth0 root {arguments.format(digits)}\n")


def outcome(script: str) -> None:
    """Check for either a scenario that the engine accepts, or an error with a location."""
    try:
        scenario, _ = read(script)
    except UserError as error:
        assert None not in (error.line, error.column)  # noqa: PT017 - either outcome is right
        return
    scenario.resolve()


@law
@given(st.text())
def test_any_text_gives_a_scenario_or_a_location(text: str) -> None:
    outcome(text)


vocabulary = st.sampled_from(
    [
        *OPTIONS, *PARAMETERS, *(word for parameters in PARAMETERS.values() for word in parameters),
        "10ms", "1us", "0", "1", "25%", "100%", "3000", "1mbit", "5kb", "100p", "normal", "pareto", "random",
        "gemodel", "state", "99999999999", "root", "parent", "1:1", "\n", ";", "dev", "eth0",
    ]
)  # fmt: skip


@law
@given(
    st.lists(vocabulary | st.sampled_from(["tc", "qdisc", "class", "add", "del", "htb", "netem", "lo"]), max_size=14)
)
def test_any_words_of_tc_give_a_scenario_or_a_location(words: list[str]) -> None:
    outcome(f"tc qdisc {' '.join(words)}")
    outcome(f"qdisc {' '.join(words)}")


@law
@given(st.sampled_from(["netem", *PARAMETERS]), st.lists(vocabulary, max_size=12))
def test_any_command_gives_a_scenario_or_a_location(kind: str, words: list[str]) -> None:
    outcome(f"tc qdisc add dev eth0 root {kind} {' '.join(words)}")


def in_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run the script's commands on two interfaces in a new network namespace, then print tc's configuration."""
    links = "ip link add there type veth peer name back"
    shell = f"{links} && {{ set -- there back; {script.replace('set -eu', 'set -u')}\n}}; tc qdisc show"
    command = ["unshare", "-n", "sh", "-c", shell]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own script


NO_NAMESPACE = (
    "needs tc, and the right to make a network namespace"
    if shutil.which("tc") is None or shutil.which("unshare") is None or in_namespace("true").stderr
    else ""
)
KERNEL_LACKS = ("Error: Specified qdisc kind is unknown.", "Error: Failed to find specified qdisc.")
"""The kernel's errors for a missing module, after tc has accepted the command."""


@pytest.mark.skipif(bool(NO_NAMESPACE), reason=NO_NAMESPACE)
@pytest.mark.parametrize(
    "forward",
    [
        {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "100 packets"},
         "impair": [{"kind": "gilbert-elliott", "p": 0.01, "r": 0.3, "h": 0.1, "k": 0.99},
                    {"kind": "duplicate", "rate": 0.001}, {"kind": "corrupt", "rate": 0.002},
                    {"kind": "jitter", "distribution": "normal", "mean": "6 ms", "deviation": "2 ms"}]},
        {"rate": "10 Mbit/s", "impair": [{"kind": "four-state-loss", "p13": 0.01, "p31": 0.5, "p32": 0.1, "p23": 0.2}]},
        {"impair": [{"kind": "jitter", "distribution": "table", "table": ["0 s", "10 ms"], "reorder": True}]},
        {"rate": "1 Gbit/s", "impair": [{"kind": "jitter", "distribution": "pareto", "mean": "4 ms", "reorder": True}]},
        {"rate": "10 Mbit/s", "delay": "1.2345 ms", "queue": {"kind": "pie"}},
        {"rate": "10 Mbit/s", "queue": {"kind": "fq-codel"}},
        {"rate": "10 Mbit/s", "queue": {"kind": "codel", "ecn": True, "ce_threshold": "2 ms"}},
        {"rate": "10 Mbit/s", "queue": {"kind": "drop-tail", "limit": "64 KiB"}},
        {"rate": "10 Mbit/s", "queue": {"kind": "red", "limit": "300 kB", "min_threshold": "30 kB",
                                        "max_threshold": "90 kB", "weight": 2.0**-5, "scale_by_size": False}},
    ],
)  # fmt: skip
def test_tc_accepts_each_script(forward: dict[str, Any]) -> None:
    scenario = path(forward, {"delay": "30 ms"})
    script, _ = written(scenario)
    done = in_namespace(script)
    complaints = [line for line in done.stderr.splitlines() if not line.startswith("RED: set bandwidth")]
    assert all(line in KERNEL_LACKS for line in complaints)
    if not complaints:
        again, _ = read(done.stdout)
        assert link(again)["forward"]["impair"] == link(scenario)["forward"]["impair"]


@pytest.mark.parametrize("arguments", ["netem delay 20ms 5ms loss 1% rate 10mbit", "netem delay 5ms reorder 25%"])
def test_a_converted_scenario_runs(anabranch: Call, tmp_path: Path, arguments: str) -> None:
    script, out = tmp_path / "link.sh", tmp_path / "link.toml"
    script.write_text(f"tc qdisc add dev eth0 root {arguments}\n")
    assert anabranch("convert", script, "--out", out).status == 0
    assert anabranch("run", out, "--set", "duration=2 s", "--json").status == 0


@pytest.mark.parametrize(
    ("arguments", "kernel_mbit_s"),
    [
        ("netem delay 100ms rate 500mbit", 92),
        ("netem delay 20ms rate 1gbit", 468),
        ("netem delay 50ms rate 1gbit", 187),
        ("netem delay 10ms", 1018),
        ("netem delay 100ms rate 100mbit", 88),
    ],
)
def test_a_flow_matches_the_real_netem(arguments: str, kernel_mbit_s: float) -> None:
    """One CUBIC flow for 10 s, netem's own limit; Linux 6.12 in virtual time, a packet a segment.

    The tolerance is 3 %: the kernel's repeats differ by 2 %, and netem's rate counts 14 bytes of
    Ethernet headers (0.9 %).
    """
    scenario, _ = read(f"tc qdisc add dev eth0 root {arguments}\n")
    changes = ('duration = "10 s"', 'flow.main.cc = "cubic"', 'flow.main.stack = "linux"')
    goodput = scenario.with_sets(*changes).run().summary["flows"]["main"]["goodput_mbit_s"]
    assert goodput == pytest.approx(kernel_mbit_s, rel=0.03)
