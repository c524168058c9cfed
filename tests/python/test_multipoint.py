"""`anabranch diagnose CLIENT SERVER`: clocks, pairs through devices, parts of the path, pauses, bad input."""

from __future__ import annotations

import json
import random
import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import Scenario, UserError
from anabranch.multipoint import compare
from anabranch.multipoint.clocks import fit
from anabranch.multipoint.compare import Points, diagnose_points
from anabranch.multipoint.text import overview
from anabranch.multipoint.tracks import tracks
from anabranch.report.points_output import html_report

from .browser import View, asked, needs_chromium
from .command import Call
from .real_kernel import needs_kernel
from .test_guides import blocks, steps, trimmed
from .two_points import (
    ACK,
    RST,
    START_NS,
    SYN,
    Change,
    Packet,
    Taps,
    clamped,
    clock,
    joined,
    nat,
    only_from,
    packets,
    randomised,
    real,
    set_clock,
    stripped_identification,
    taps,
    through,
    without_option,
    write,
)

PATH = """
duration = "6 s"
[link.near]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "10 us"
[link.wan]
between = ["M", "N"]
rate = "10 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [FORWARD]
reverse.impair = [REVERSE]
[link.far]
between = ["N", "B"]
rate = "1 Gbit/s"
delay = "10 us"
[flow.main]
from = "A"
to = "B"
count = 2
[flow.back]
from = "B"
to = "A"
stop = "5 s"
[flow.chat]
from = "A"
to = "B"
workload = { kind = "request-response", request = "100 bytes", response = "20 kB" }
"""
LOSS = PATH.replace("FORWARD", '{ kind = "bernoulli-loss", rate = 0.01 }').replace(
    "REVERSE", '{ kind = "bernoulli-loss", rate = 0.005 }'
)
CLIENT, SERVER = "10.0.0.1", "10.0.0.4"
OUTSIDE = "203.0.113.9"


@pytest.fixture(scope="module")
def lossy() -> Taps:
    return taps(LOSS)


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., Points]:
    def made(client: list[Packet], server: list[Packet], **named: Any) -> Points:
        files = [write(tmp_path / "client.pcap", client), write(tmp_path / "server.pcap", server)]
        return diagnose_points(files, **named)

    return made


def wan(found: Taps, direction: str) -> dict[str, Any]:
    """The counts of the link between the points."""
    (row,) = (
        row
        for row in found.run.frame("links").iter_rows(named=True)
        if row["link"] == "wan" and row["direction"] == direction
    )
    return row


def device(found: Taps, *outward: Change, inward: tuple[Change, ...] = ()) -> list[Packet]:
    """The packets at the server after a device: it changes the client's packets, and undoes that in the others."""
    return through(found.server, only_from(CLIENT, *outward), only_from(SERVER, *inward))


def test_losses_of_both_ways_are_those_of_the_run(lossy: Taps, compared: Callable[..., Points]) -> None:
    found = compared(lossy.client, through(lossy.server, clock(-7.5, 30e-6, START_NS)))
    (part,) = found.content["parts"]
    for way, direction in (("forward", "forward"), ("backward", "reverse")):
        row = wan(lossy, direction)
        own = part[way]  # type: ignore[literal-required]
        assert own["lost"] == row["dropped_packets"] + row["lost_packets"]
        assert (own["duplicated"], own["reordered"], own["unseen"], own["missed"]) == (0, 0, 0, 0)
        assert own["packets"] <= row["sent_packets"] + own["lost"] + 5
        assert sum(own["added"].values()) == 0
    assert found.content["before"]["lost_to_end"] == found.content["beyond"]["lost_to_end"] == 0


@needs_kernel
def test_packets_of_a_kernel_are_matched(compared: Callable[..., Points]) -> None:
    run = Scenario.from_text(LOSS, file="points.toml").run_kernel(seed=3, captures=["near", "far"])
    client, server = (packets(run.pcapng(name)) for name in ("near", "far"))
    found = compared(client, through(server, nat("10.113.0.1", OUTSIDE), clock(2.5, 20e-6)))
    (part,) = found.content["parts"]
    for way, direction in (("forward", "forward"), ("backward", "reverse")):
        row = wan(Taps(client, server, run), direction)
        own = part[way]  # type: ignore[literal-required]
        assert own["lost"] == pytest.approx(row["dropped_packets"] + row["lost_packets"], abs=3)
        assert own["lost"] > 10
        assert (own["duplicated"], own["unseen"], own["missed"]) == (0, 0, 0)
    changed = {change["kind"] for one in found.content["connections"] for own in one["changes"] for change in own}
    assert changed == {"address"}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("offset_s", "drift"), [(0.0, 0.0), (3600.25, 0.0), (-0.004, 80e-6), (12.0, -200e-6)])
def test_the_clock_of_the_other_point_is_found(
    seed: int, offset_s: float, drift: float, compared: Callable[..., Points]
) -> None:
    run = taps(LOSS, seed)
    found = compared(run.client, through(run.server, clock(offset_s, drift, START_NS)))
    told = found.content["points"][1]["clock"]
    assert told is not None
    # The path is as long both ways, so that the offset is exact but for the drift of half the run.
    assert told["offset_s"] == pytest.approx(offset_s + drift * 3.0, abs=100e-6)
    assert told["drift_low_ppm"] - 1.0 <= drift * 1e6 <= told["drift_high_ppm"] + 1.0
    assert told["drift_ppm"] == pytest.approx(drift * 1e6, abs=20)
    assert told["uncertain_s"] == pytest.approx(0.015, abs=0.001)
    (part,) = found.content["parts"]
    assert part["round_trip_ms"] == pytest.approx(30.1, abs=0.5)
    for way in ("forward", "backward"):
        assert part[way]["delay_ms"]["min"] == pytest.approx(15.05, abs=0.25)


@pytest.mark.parametrize("shape", [1.0, 2.0])
def test_the_drift_lies_in_its_interval(shape: float) -> None:
    """Over seeds, with delays of which few are near the least one."""
    for seed in range(24):
        rng = np.random.default_rng(seed)
        drift, count = float(rng.uniform(-100e-6, 100e-6)), int(rng.choice([60, 600, 4000]))
        first = np.sort(rng.uniform(0, 30, count))
        is_forward = rng.random(count) < 0.5
        delay = 0.02 + rng.gamma(shape, 1e-3, count)
        second = np.where(is_forward, first + delay, first - delay) * (1 + drift) + 3
        found = fit(first.round(6), second.round(6), is_forward)
        assert found.drift_low <= drift <= found.drift_high, seed


@pytest.mark.parametrize("point", [0, 1])
@pytest.mark.parametrize(("at_s", "size_s"), [(2.0, 0.03), (3.5, -0.03)])
def test_a_clock_that_is_set_is_reported_and_is_no_delay(
    point: int, at_s: float, size_s: float, lossy: Taps, compared: Callable[..., Points]
) -> None:
    plain = compared(lossy.client, lossy.server).content
    both = [lossy.client, lossy.server]
    both[point] = through(both[point], set_clock(at_s, size_s))
    found = compared(both[0], through(both[1], clock(7.0, 50e-6, START_NS))).content
    (step,) = found["points"][point]["clock_steps"]
    # Queues change the delays of neighbouring packets by two packets of 10 Mbit/s.
    assert step["size_s"] == pytest.approx(size_s, abs=3e-3)
    assert step["time_s"] - found["points"][point]["start_s"] == pytest.approx(at_s + max(size_s, 0), abs=0.05)
    assert not found["points"][1 - point]["clock_steps"]
    (part,), (before,) = found["parts"], plain["parts"]
    for way in ("forward", "backward"):
        assert part[way]["lost"] == pytest.approx(before[way]["lost"], abs=2)
        for name in ("min", "median", "p95", "max"):
            assert part[way]["delay_ms"][name] == pytest.approx(before[way]["delay_ms"][name], abs=3)
    assert any("was set" in line for line in overview(found))


def test_no_clock_of_a_steady_run_was_set(lossy: Taps, compared: Callable[..., Points]) -> None:
    found = compared(lossy.client, through(lossy.server, clock(-3.0, -90e-6, START_NS))).content
    assert [point["clock_steps"] for point in found["points"]] == [[], []]


def test_a_queue_shows_in_the_delay_of_its_way_alone(lossy: Taps, compared: Callable[..., Points]) -> None:
    text = (
        PATH.replace("FORWARD", "")
        .replace("REVERSE", "")
        .replace('[flow.back]\nfrom = "B"\nto = "A"\nstop = "5 s"', "")
    )
    run = taps(text.replace("1 bdp", "3 bdp"))
    (part,) = compared(run.client, run.server).content["parts"]
    assert (part["forward"]["delay_ms"]["p95"] or 0) > 40
    assert (part["backward"]["delay_ms"]["p95"] or 99) < 16


NO_STAMPS = without_option(8)
DEVICES: dict[str, tuple[tuple[Change, ...], tuple[Change, ...], set[str], set[str]]] = {
    "none": ((), (), {"addresses"}, set()),
    "nat": ((nat(CLIENT, OUTSIDE, 20_000),), (nat(CLIENT, OUTSIDE, 20_000),), {"sequence-numbers"}, {"address"}),
    "randomised": (
        (randomised(CLIENT, 0x9ABCDEF0),),
        (randomised(CLIENT, 0x9ABCDEF0),),
        {"addresses", "timestamps"},
        {"sequence-numbers"},
    ),
    "nat-and-randomised": (
        (randomised(CLIENT, 0x9ABCDEF0), nat(CLIENT, OUTSIDE, 20_000)),
        (randomised(CLIENT, 0x9ABCDEF0), nat(CLIENT, OUTSIDE, 20_000)),
        {"timestamps", "sequence-numbers"},
        {"address", "sequence-numbers"},
    ),
    "clamped": ((clamped(1300),), (), {"addresses"}, {"mss"}),
    "no-timestamps": ((NO_STAMPS,), (NO_STAMPS,), {"addresses"}, {"option-removed", "option-added"}),
    "no-identification": ((stripped_identification,), (stripped_identification,), {"addresses"}, set()),
}


@pytest.mark.parametrize("name", DEVICES)
def test_connections_are_paired_through_a_device(name: str, lossy: Taps, compared: Callable[..., Points]) -> None:
    outward, inward, by, kinds = DEVICES[name]
    found = compared(lossy.client, through(device(lossy, *outward, inward=inward), clock(1.0)))
    connections = found.content["connections"]
    assert len(connections) == 4
    assert {one["paired_by"][0] for one in connections} <= by
    changed = {change["kind"] for one in connections for own in one["changes"] for change in own}
    assert changed == kinds
    (part,) = found.content["parts"]
    plain = compared(lossy.client, lossy.server).content["parts"][0]
    for way in ("forward", "backward"):
        assert part[way]["lost"] == plain[way]["lost"]


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 44))])
def test_each_lost_packet_is_found_on_random_paths(seed: int, compared: Callable[..., Points]) -> None:
    draw = random.Random(seed)  # noqa: S311 - no secret
    impair = [f'{{ kind = "bernoulli-loss", rate = {draw.choice([0.002, 0.01, 0.03])} }}']
    if draw.random() < 0.5:
        impair.append('{ kind = "jitter", distribution = { kind = "exponential" }, mean = "1 ms", reorder = true }')
    text = PATH.replace("FORWARD", ", ".join(impair)).replace("REVERSE", '{ kind = "bernoulli-loss", rate = 0.01 }')
    text = text.replace('"10 Mbit/s"', f'"{draw.choice([2, 10, 30])} Mbit/s"')
    text = text.replace('"15 ms"', f'"{draw.choice([2, 15, 60])} ms"')
    run = taps(text, seed)
    name = draw.choice(list(DEVICES))
    outward, inward, _, kinds = DEVICES[name]
    shifted = clock(draw.uniform(-100, 100), draw.uniform(-1e-4, 1e-4), START_NS)
    found = compared(run.client, through(device(run, *outward, inward=inward), shifted))
    assert {change["kind"] for one in found.content["connections"] for own in one["changes"] for change in own} == kinds
    is_swapped = found.content["points"][0]["name"] == "server"
    for way, passage in enumerate(found.comparison.parts[0].passages):
        is_outward = (way == 0) != is_swapped
        up, down = (run.client, run.server) if is_outward else (run.server, run.client)
        host = CLIENT if is_outward else SERVER
        # Before the device both points have equal octets of a packet.
        arrived = {one.octets for one in down if one.source[0] == host}
        due = passage.sent.rows["frame"][passage.is_due].tolist()
        truth = {frame for frame in due if up[frame - 1].octets not in arrived}
        assert set(passage.sent.rows["frame"][passage.is_lost].tolist()) == truth


def test_sizes_pair_connections_if_a_device_changes_everything_else(compared: Callable[..., Points]) -> None:
    run = taps(LOSS.replace("count = 2\n", ""))
    server = through(
        run.server, randomised(CLIENT, 0x12345678), randomised(SERVER, 0x0FEDCBA9), NO_STAMPS, stripped_identification,
        nat(CLIENT, OUTSIDE, 20_000),
    )  # fmt: skip
    found = compared(run.client, server)
    # The others are opened to the translated address: nothing but their sizes would be left.
    (one,) = found.content["connections"]
    assert (one["ids"][0], one["paired_by"]) == (1, ["sizes"])
    assert found.content["points"][0]["unpaired"] == 2


def test_values_of_changed_headers_are_named(lossy: Taps, compared: Callable[..., Points]) -> None:
    found = compared(lossy.client, device(lossy, clamped(1300), without_option(4)))
    changes = found.content["connections"][0]["changes"][0]
    (mss,) = [one for one in changes if one["kind"] == "mss"]
    assert (mss["of"], mss["before"], mss["after"]) == ("a", 1460, 1300)
    assert mss["frames"][0][0] == 1
    (sack,) = [one for one in changes if one["kind"] == "option-removed"]
    assert (sack["of"], sack["before"]) == ("a", "sack-permitted")


def test_sack_blocks_that_a_device_forgets_are_found(lossy: Taps, compared: Callable[..., Points]) -> None:
    forgetful = randomised(CLIENT, 0x9ABCDEF0, sacks=False)
    found = compared(lossy.client, through(lossy.server, forgetful))
    kinds = {(change["kind"], change["of"]) for change in found.content["connections"][0]["changes"][0]}
    assert ("sack", "b") in kinds


def _with_ecn(content: list[Packet], field: int) -> list[Packet]:
    """Data with an ECN field."""
    return [
        replace(one, octets=one.octets[:1] + bytes([one.octets[1] & 0xFC | field]) + one.octets[2:])
        if one.payload
        else one
        for one in content
    ]


@pytest.mark.parametrize(
    ("before", "after", "kinds"), [(2, 0, {"ecn-cleared"}), (3, 2, {"ce-cleared"}), (2, 3, set()), (2, 2, set())]
)
def test_ecn_fields_that_a_device_clears_are_found(
    before: int, after: int, kinds: set[str], lossy: Taps, compared: Callable[..., Points]
) -> None:
    client = [one for one in lossy.client if one.source[1] == 5001 or one.target[1] == 5001]
    server = [one for one in lossy.server if one.source[1] == 5001 or one.target[1] == 5001]
    outward = {one.octets for one in client if one.source[0] == CLIENT}
    fields = {True: before, False: after}
    client = [_with_ecn([one], fields[one.octets in outward])[0] for one in client]
    server = [_with_ecn([one], fields[one.source[0] != CLIENT])[0] for one in server]
    found = compared(client, server).content
    assert {change["kind"] for one in found["connections"] for own in one["changes"] for change in own} == kinds


def test_a_reset_that_only_one_point_has_is_the_path_s(lossy: Taps, compared: Callable[..., Points]) -> None:
    last = [one for one in lossy.client if one.source[0] == SERVER and one.source[1] == 5001][-400]
    reset = last.changed(13, bytes([RST])).changed(4, last.seq.to_bytes(4, "big"))
    client = sorted([*lossy.client, reset], key=lambda one: one.time_ns)
    found = compared(client, lossy.server)
    assert found.content["parts"][0]["backward"]["added"]["rst"] == 1
    kinds = [
        (change["kind"], change["of"])
        for one in found.content["connections"]
        for own in one["changes"]
        for change in own
    ]
    assert kinds == [("rst-added", "b")]
    assert any("a RST in the name of 10.0.0.4 comes from a device" in line for line in overview(found.content))


def test_super_segments_of_a_sending_host_are_split(lossy: Taps, compared: Callable[..., Points]) -> None:
    client = joined(lossy.client, CLIENT)
    assert len(client) < len(lossy.client)
    plain = compared(lossy.client, lossy.server).content["parts"][0]
    (part,) = compared(client, lossy.server).content["parts"]
    assert part["forward"]["lost"] == plain["forward"]["lost"]
    assert part["backward"]["lost"] == plain["backward"]["lost"]


def test_records_that_a_capture_dropped_are_no_losses(lossy: Taps, compared: Callable[..., Points]) -> None:
    with_data = [i for i, one in enumerate(lossy.server) if one.source[0] == CLIENT and one.payload]
    gone = set(with_data[200:-200:50])
    server = [one for i, one in enumerate(lossy.server) if i not in gone]
    plain = compared(lossy.client, lossy.server).content["parts"][0]["forward"]
    own = compared(lossy.client, server).content["parts"][0]["forward"]
    assert own["lost"] == plain["lost"]
    assert own["unseen"] == len(gone)
    with_data = [i for i, one in enumerate(lossy.client) if one.source[0] == CLIENT and one.payload]
    gone = set(with_data[200:-200:50])
    client = [one for i, one in enumerate(lossy.client) if i not in gone]
    own = compared(client, lossy.server).content["parts"][0]["forward"]
    assert own["missed"] + (plain["lost"] - own["lost"]) >= 0.97 * len(gone)
    assert own["added"]["data"] == 0


def test_the_last_records_of_a_connection_that_a_capture_dropped_are_of_no_device(
    lossy: Taps, compared: Callable[..., Points]
) -> None:
    seen = {one.octets for one in lossy.server}
    came = [one for one in lossy.client if one.source[0] == CLIENT and one.payload and one.octets in seen]
    gone = {one.octets for one in came[-5:]}
    last = min(one.time_ns for one in came[-5:])
    client = [one for one in lossy.client if one.octets not in gone and one.time_ns < last + 20_000_000]
    own = compared(client, lossy.server).content["parts"][0]["forward"]
    assert own["added"]["data"] == 0


def test_reordering_and_duplicates_are_the_run_s(compared: Callable[..., Points]) -> None:
    jitter = '{ kind = "jitter", distribution = { kind = "exponential" }, mean = "1 ms", reorder = true }'
    impair = '{ kind = "duplicate", rate = 0.01 }, ' + jitter
    run = taps(PATH.replace("FORWARD", impair).replace("REVERSE", ""))
    (part,) = compared(run.client, run.server).content["parts"]
    counts = Counter(one.octets for one in run.server if one.source[0] == CLIENT)
    counts.subtract(one.octets for one in run.client if one.source[0] == CLIENT)
    assert part["forward"]["duplicated"] == sum(count for count in counts.values() if count > 0)
    assert part["forward"]["duplicated"] > 10
    assert part["forward"]["reordered"] > 100
    assert part["backward"]["reordered"] == part["backward"]["duplicated"] == 0


def test_pauses_belong_to_the_end_that_thinks(compared: Callable[..., Points]) -> None:
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("[flow.main]")[0]
    think = """
[flow.web]
from = "A"
to = "B"
workload = { kind = "request-response", request = "200 bytes", response = "2 kB", think = "300 ms" }
"""
    run = taps(text + think)
    found = compared(run.client, run.server).content
    first = found["belongs_to"][0]
    # The client of this workload is B, which opens the connection: its capture is the second.
    assert first["place"] == "a"
    assert first["time_s"] > 0.7 * sum(one["time_s"] for one in found["belongs_to"])


def test_a_client_that_receives_a_long_answer_does_not_pause(compared: Callable[..., Points]) -> None:
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("[flow.main]")[0]
    text += '[flow.web]\nfrom = "A"\nto = "B"\n'
    run = taps(text + 'workload = { kind = "request-response", request = "200 bytes", response = "2 MB" }\n')
    (connection,) = compared(run.client, run.server).content["connections"]
    # An answer takes more than a second.
    assert max((pause["duration_s"] for pause in connection["pauses"]), default=0.0) < 0.5


HOSTS_APART = """
duration = "15 s"
[link.zero]
between = ["A", "L"]
rate = "1 Gbit/s"
delay = "3 ms"
IN_ZERO
[link.near]
between = ["L", "M"]
rate = "1 Gbit/s"
delay = "10 us"
[link.wan]
between = ["M", "N"]
rate = "10 Mbit/s"
delay = "15 ms"
IN_WAN
[link.far]
between = ["N", "O"]
rate = "1 Gbit/s"
delay = "10 us"
[link.last]
between = ["O", "B"]
rate = "1 Gbit/s"
delay = "3 ms"
IN_LAST
[flow.web]
from = "A"
to = "B"
workload = { kind = "request-response", request = "1 kB", response = "1 kB" }
"""
"""Points away from both hosts; B opens the connection, so that its side is the first one."""


@pytest.mark.parametrize(("offset_s", "drift"), [(0.0, 0.0), (10.0, 50e-6), (-0.4, -50e-6)])
@pytest.mark.parametrize("way", ["forward", "reverse"])
@pytest.mark.parametrize(("link", "place"), [("ZERO", "client–b"), ("WAN", "server–client"), ("LAST", "a–server")])
def test_timeouts_belong_to_the_part_that_lost(
    link: str, place: str, way: str, offset_s: float, drift: float, compared: Callable[..., Points]
) -> None:
    impaired = f'{way}.impair = [{{ kind = "bernoulli-loss", rate = 0.05 }}]'
    text = HOSTS_APART.replace(f"IN_{link}", impaired)
    run = taps(re.sub("IN_[A-Z]+", "", text))
    found = compared(run.client, through(run.server, clock(offset_s, drift, START_NS))).content
    timeouts = [
        pause["belongs_to"]
        for one in found["connections"]
        for pause in one["pauses"]
        if pause["cause"] == "retransmission-timeout"
    ]
    assert len(timeouts) >= 10
    assert timeouts.count(place) >= 0.95 * len(timeouts)
    lost = found["parts"][0]["forward"]["lost"] + found["parts"][0]["backward"]["lost"]
    assert (lost > 0) == (link == "WAN")
    outside = {"ZERO": found["beyond"], "LAST": found["before"], "WAN": None}[link]
    for one in (found["before"], found["beyond"]):
        assert (one["lost_to_end"] + one["lost_from_end"] > 0) == (one is outside)


def test_three_points_are_two_parts(tmp_path: Path) -> None:
    text = LOSS.replace(
        "[link.far]",
        '[link.more]\nbetween = ["N", "O"]\nrate = "1 Gbit/s"\ndelay = "5 ms"\n'
        'forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]\n[link.far]',
    ).replace('between = ["N", "B"]', 'between = ["O", "B"]')
    text = text.replace('from = "B"\nto = "A"', 'from = "A"\nto = "B"')
    ends = taps(text)
    middle = taps(text, client="more", server="far")
    files = [
        write(tmp_path / "one.pcap", ends.client),
        write(tmp_path / "two.pcap", through(middle.client, clock(2.0))),
        write(tmp_path / "three.pcap", through(ends.server, clock(-4.0))),
    ]
    found = diagnose_points(files).content
    assert [(part["from"], part["to"]) for part in found["parts"]] == [("one", "two"), ("two", "three")]
    row = wan(ends, "forward")
    assert found["parts"][0]["forward"]["lost"] == row["dropped_packets"] + row["lost_packets"]
    assert found["parts"][1]["forward"]["lost"] > 0
    offsets = [point["clock"]["offset_s"] for point in found["points"] if point["clock"]]
    assert offsets == pytest.approx([2.0, -4.0], abs=0.006)
    again = diagnose_points([files[1], files[2], files[0]]).content
    assert [point["name"] for point in again["points"]] == ["one", "two", "three"]
    assert again["reordered_points"]


def test_swapped_captures_are_put_in_the_order_of_the_path(lossy: Taps, tmp_path: Path, anabranch: Call) -> None:
    # Most connections are opened at the client.
    files = [write(tmp_path / "server.pcap", lossy.server), write(tmp_path / "client.pcap", lossy.client)]
    text = LOSS.partition("[flow.back]")[0]
    run = taps(text)
    files = [write(tmp_path / "server.pcap", run.server), write(tmp_path / "client.pcap", run.client)]
    done = anabranch("diagnose", *files)
    assert done.status == 0, done.err
    assert f"in another order than given: client ({files[1]})" in re.sub(r"\s+", " ", done.out)


def test_a_part_of_the_time_is_compared_and_said(lossy: Taps, compared: Callable[..., Points]) -> None:
    late = [one for one in lossy.server if one.time_ns - START_NS > 2.5e9]
    early = [one for one in lossy.client if one.time_ns - START_NS < 4.5e9]
    found = compared(early, through(late, clock(100.0)))
    assert found.content["overlap_s"] == pytest.approx(2.0, abs=0.05)
    assert any("the captures overlap for 2" in line for line in overview(found.content))
    (part,) = found.content["parts"]
    whole = compared(lossy.client, lossy.server).content["parts"][0]
    assert 0 < part["forward"]["lost"] < whole["forward"]["lost"]
    assert part["forward"]["unseen"] == part["forward"]["missed"] == 0
    assert sum(part["forward"]["added"].values()) == 0


def test_bad_input_is_one_message(lossy: Taps, tmp_path: Path, anabranch: Call) -> None:
    client = write(tmp_path / "client.pcap", lossy.client)
    other = write(tmp_path / "other.pcap", taps(LOSS, 5, salt=9).server)
    moved = write(tmp_path / "moved.pcap", through(taps(LOSS, 5, salt=9).server, nat(CLIENT, "192.0.2.1", 30_000)))
    empty = write(tmp_path / "empty.pcap", [])
    for files, options, message in (
        ((client, moved), (), "have no TCP connection in common\n  client has 10.0.0.1:1024"),
        ((client, other), (), "have no TCP connection in common"),
        ((client, empty), (), f"error: {empty}: it has no TCP segment"),
        ((empty, client), (), f"error: {empty}: it has no TCP segment"),
        ((client, tmp_path / "none.pcap"), (), "none.pcap"),
        (
            (client, client),
            ("--names", "one"),
            "expected 2 names, one for each capture\n  for example --names client,server",
        ),
        ((client, client), ("--names", "one,one"), "expected different names"),
        ((client, client), ("--names", "client,b"), "--names client,b: b is an end of each connection"),
        ((client, client), ("--names", "x–y,z"), "– separates the names of a part's points"),
        ((client, client), ("--advise",), "--advise is for one capture, and 2 are given"),
        ((client, client), ("--connection", "99"), "not all captures have this connection"),
        ((client,), ("--names", "one"), "--names is for several captures, and one is given"),
    ):
        done = anabranch("diagnose", *files, *options)
        assert (done.status, done.out) == (2, ""), done.out
        assert message in done.err
        assert done.err.count("error: ") == 1


def test_one_capture_twice_loses_nothing(lossy: Taps, compared: Callable[..., Points]) -> None:
    found = compared(lossy.client, lossy.client)
    (part,) = found.content["parts"]
    assert part["forward"]["lost"] == part["backward"]["lost"] == 0
    assert part["round_trip_ms"] == pytest.approx(0, abs=0.01)


def test_the_screen_and_the_document(lossy: Taps, tmp_path: Path, anabranch: Call) -> None:
    files = [write(tmp_path / "a.pcap", lossy.client), write(tmp_path / "b.pcap", through(lossy.server, clock(1.5)))]
    done = anabranch("diagnose", *files, "--names", "client,server")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    assert "Lost: " in done.out
    document = json.loads(anabranch("diagnose", *files, "--json", "--connection", 2).out)
    assert [one["id"] for one in document["connections"]] == [2]
    assert document["summary"]
    one = anabranch("diagnose", *files, "--connection", 2)
    assert one.out.startswith("Connection 2: ")
    port = document["connections"][0]["a"].rpartition(":")[2]
    chosen = json.loads(anabranch("diagnose", *files, "--json", "--port", port).out)
    assert [one["id"] for one in chosen["connections"]] == [2]


def test_out_writes_the_report(lossy: Taps, tmp_path: Path, anabranch: Call) -> None:
    files = [write(tmp_path / "a.pcap", lossy.client), write(tmp_path / "b.pcap", lossy.server)]
    done = anabranch("diagnose", *files, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert done.err == f"wrote {tmp_path / 'out' / 'report.html'} and points.json\n"
    document = json.loads((tmp_path / "out" / "points.json").read_text())
    assert document["format"] == 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Pauses and their places" in page
    assert "--out DIR" in page


@needs_chromium
def test_the_ladder_has_a_line_for_each_point(lossy: Taps, compared: Callable[..., Points], tmp_path: Path) -> None:
    found = compared(lossy.client, lossy.server, names=["client", "server"])
    script = """
      const block = document.querySelector(".points-moments"), select = block.querySelector("select");
      const before = block.querySelector(".moment-told").textContent;
      select.value = String(select.options.length - 1);
      select.dispatchEvent(new Event("change"));
      return { before, after: block.querySelector(".moment-told").textContent,
        ends: [...block.querySelectorAll(".ladder svg > text.strong")].map((one) => one.textContent).slice(0, 2),
        rows: block.querySelectorAll(".ladder tbody tr").length,
        charts: anabranchCharts.plots.map((one) => one.chart.name).slice(0, 2),
        labels: [...document.querySelectorAll("[role=img]")].every((one) => one.getAttribute("aria-label")),
        wide: document.documentElement.scrollWidth <= document.documentElement.clientWidth };
    """
    for width in (400, 1280):
        got = asked(html_report(found), script, tmp_path, View(width, 800))
        assert "error" not in got, got
        assert got["before"] != got["after"]
        assert got["ends"] == ["client", "server"]
        assert got["rows"] > 5
        assert got["charts"] == ["delay-0-0", "delay-0-1"]
        assert got["labels"]
        assert got["wide"]


@pytest.fixture(scope="module")
def small() -> Taps:
    return taps(LOSS.replace('"6 s"', '"1 s"'))


damage = given(
    edits=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2**20), st.integers(0, 255)), max_size=60),
    drops=st.lists(st.integers(0, 2**16), max_size=20),
    order=st.lists(st.integers(0, 2**16), max_size=10),
)
law = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(law, max_examples=12)
@damage
def test_damaged_pairs_never_crash(
    small: Taps, tmp_path: Path, edits: list[tuple[int, int, int]], drops: list[int], order: list[int]
) -> None:
    diagnose_damaged(small, tmp_path, edits, drops, order)


@pytest.mark.long
@settings(law, max_examples=120)
@damage
def test_many_damaged_pairs_never_crash(
    small: Taps, tmp_path: Path, edits: list[tuple[int, int, int]], drops: list[int], order: list[int]
) -> None:
    diagnose_damaged(small, tmp_path, edits, drops, order)


def diagnose_damaged(
    small: Taps, tmp_path: Path, edits: list[tuple[int, int, int]], drops: list[int], order: list[int]
) -> None:
    sides = [list(small.client), list(small.server)]
    for at in order:
        one = sides[at % 2]
        place = at % (len(one) - 1)
        one[place], one[place + 1] = one[place + 1], one[place]
    for at in drops:
        sides[at % 2].pop(at % len(sides[at % 2]))
    files = [write(tmp_path / f"{i}.pcap", side) for i, side in enumerate(sides)]
    for side, at, value in edits:
        content = bytearray(files[side].read_bytes())
        # The header of the file has the format, without which it cannot be read.
        content[24 + at % (len(content) - 24)] = value
        files[side].write_bytes(content)
    try:
        found = diagnose_points(files)
    except UserError:
        return
    assert "\n".join(overview(found.content))
    for part in found.content["parts"]:
        for own in (part["forward"], part["backward"]):
            assert 0 <= own["lost"] <= own["packets"]
            assert own["lost_data"] <= own["data_packets"]
    assert html_report(found)
    json.dumps(found)


def test_the_commands_of_the_guide_print_the_shown_output(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown_outputs = 0
    for command, shown in steps(blocks("guides/diagnose-points.md")):
        done = anabranch(*shlex.split(command)[1:])
        assert done.status == 0, done.err
        if shown is not None:
            assert trimmed(done.out) == trimmed(shown)
            shown_outputs += 1
    assert shown_outputs == 1


def test_a_capture_that_nothing_reached_was_running(lossy: Taps, compared: Callable[..., Points]) -> None:
    first = lossy.client[0]
    ends = {first.source, first.target}
    client = [one for one in lossy.client if {one.source, one.target} == ends]
    server = [one for one in lossy.server if {one.source, one.target} == ends]
    middle = START_NS + 3 * 10**9
    # The path ends after 3 s: the client repeats its data, and nothing comes back.
    late = [one for one in client if one.time_ns >= middle and one.source == first.source][:8]
    tail = [replace(one, time_ns=middle + number * 300_000_000) for number, one in enumerate(late, 1)]
    found = compared(
        [one for one in client if one.time_ns < middle] + tail, [one for one in server if one.time_ns < middle]
    )
    (part,) = found.content["parts"]
    whole = compared([one for one in client if one.time_ns < middle], server).content["parts"][0]
    # Of the last one nothing shows that the capture did not end before it arrived.
    assert part["forward"]["lost"] >= whole["forward"]["lost"] + len(tail) - 1
    assert not any("overlap" in line for line in overview(found.content))


def later(one: Packet, seconds: float) -> Packet:
    return replace(one, time_ns=one.time_ns + round(seconds * 1e9))


def lost_and_added(found: Points) -> list[int]:
    (part,) = found.content["parts"]
    return [value for way in (part["forward"], part["backward"]) for value in (way["lost"], sum(way["added"].values()))]


def test_repeated_syns_alone_are_matched(lossy: Taps, compared: Callable[..., Points]) -> None:
    syn = next(one for one in lossy.client if one.flags == SYN)
    syns = [later(syn, seconds) for seconds in (0, 1, 3, 7)]
    found = compared(syns, [later(one, 0.01) for one in syns])
    assert lost_and_added(found) == [0, 0, 0, 0]
    (part,) = found.content["parts"]
    assert part["forward"]["packets"] == 4
    # No packet came back, so that the delay counts as a difference of the clocks.
    assert part["round_trip_ms"] is None


def test_keepalives_alone_are_matched(lossy: Taps, compared: Callable[..., Points]) -> None:
    ends = {lossy.client[0].source, lossy.client[0].target}
    own = [one for one in lossy.client if {one.source, one.target} == ends and one.flags == ACK and not one.payload]
    probe = next(one for one in own if one.source[0] == CLIENT)
    answer = next(one for one in own if one.source[0] == SERVER)
    no_id = through([probe, replace(answer, time_ns=probe.time_ns)], stripped_identification, NO_STAMPS)
    client, server = [], []
    for number in range(5):
        asked, told = (later(one, 60 * number) for one in no_id)
        client += [asked, later(told, 0.0201)]
        server += [later(asked, 0.01), later(told, 0.0101)]
    found = compared(client, through(server, clock(3.0)))
    assert lost_and_added(found) == [0, 0, 0, 0]
    (part,) = found.content["parts"]
    assert part["round_trip_ms"] == pytest.approx(20.0, abs=0.01)


@pytest.mark.parametrize("is_doubled", [(True, True), (False, True), (True, False)])
def test_captures_that_have_each_packet_twice(
    is_doubled: tuple[bool, bool], lossy: Taps, compared: Callable[..., Points]
) -> None:
    sides = [
        [one for packet in side for one in ([packet, later(packet, 5e-6)] if twice else [packet])]
        for side, twice in zip((lossy.client, lossy.server), is_doubled, strict=True)
    ]
    (part,) = compared(sides[0], through(sides[1], clock(2.0))).content["parts"]
    assert part["round_trip_ms"] == pytest.approx(30.1, abs=0.5)


@pytest.mark.parametrize("cut", ["the client's capture ends early", "the server's capture begins late"])
def test_packets_of_a_long_queue_at_the_edge_of_a_capture_are_matched(
    cut: str, compared: Callable[..., Points]
) -> None:
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("[flow.main]")[0]
    text = text.replace('"10 Mbit/s"', '"2 Mbit/s"').replace('"1 bdp"', '"40 bdp"')
    # Packets meet no queue before and after the transfer.
    run = taps(
        text + '[flow.main]\nfrom = "A"\nto = "B"\nstart = "0.5 s"\nstop = "4 s"\n'
        '[flow.chat]\nfrom = "A"\nto = "B"\n'
        'workload = { kind = "request-response", request = "100 bytes", response = "100 bytes" }\n'
    )
    client, server = (stripped(side) for side in (run.client, run.server))
    middle = START_NS + 3 * 10**9
    if "client" in cut:
        client = [one for one in client if one.time_ns < middle]
    else:
        server = [one for one in server if one.time_ns > middle]
    (part,) = compared(client, through(server, clock(7.0))).content["parts"]
    assert (part["forward"]["delay_ms"]["max"] or 0) > 200
    arrived = {one.octets for one in server}
    gone = sum(one.source[0] == CLIENT and one.octets not in arrived for one in client)
    if "client" in cut:
        assert part["forward"]["lost"] == gone
    else:
        assert sum(part["forward"]["added"].values()) == 0


def stripped(side: list[Packet]) -> list[Packet]:
    """Packets that only their octets of data distinguish."""
    return through(side, NO_STAMPS, stripped_identification)


def test_few_super_segments_among_many_acknowledgments_are_matched(compared: Callable[..., Points]) -> None:
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("[flow.main]")[0]
    text += '[flow.web]\nfrom = "A"\nto = "B"\n'
    run = taps(text + 'workload = { kind = "request-response", request = "2 kB", response = "200 kB" }\n')
    host = joined(run.server, SERVER, 2)
    assert 10 < len(run.server) - len(host) < 0.05 * len(host)
    plain, cut = (lost_and_added(compared(run.client, server)) for server in (run.server, host))
    assert cut == plain


def far_on(first: int, jumps: list[int], octets: int) -> Change:
    """The client sends many octets in no time, before some octets after its first number."""

    def moved(number: int, *, is_after: bool) -> bytes:
        place = (number - first) & 0xFFFFFFFF
        count = sum(place >= jump + (0 if is_after else 1) for jump in jumps)
        return ((number + count * octets) & 0xFFFFFFFF).to_bytes(4, "big")

    def change(one: Packet) -> Packet:
        if one.source[0] == CLIENT:
            return one.changed(4, moved(one.seq, is_after=True))
        return one.changed(8, moved(one.ack, is_after=False)) if one.flags & ACK else one

    return change


@pytest.mark.parametrize("is_stamped", [True, False])
@pytest.mark.parametrize("late_s", [0.35, 0.6, 0.85])
def test_a_capture_that_begins_after_gigabytes_is_matched(
    late_s: float, is_stamped: bool, compared: Callable[..., Points]
) -> None:
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("[flow.main]")[0].replace('"6 s"', '"1.2 s"')
    # The window keeps the queue empty.
    flow = '[flow.main]\nfrom = "A"\nto = "B"\ntransport = { receive_window = "60 kB" }\n'
    run = taps(text.replace('"10 Mbit/s"', '"100 Mbit/s"') + flow)
    first = run.client[0].seq
    data = [one for one in run.client if one.source[0] == CLIENT and one.payload]
    jumps = [
        (next(one for one in data if one.time_ns > START_NS + seconds * 1e9).seq - first) & 0xFFFFFFFF
        for seconds in (0.3, 0.5, 0.7)
    ]
    sides = [through(side, far_on(first, jumps, 1_500_000_000)) for side in (run.client, run.server)]
    if not is_stamped:
        sides = [through(side, NO_STAMPS) for side in sides]
    late = [one for one in sides[1] if one.time_ns > START_NS + late_s * 1e9]
    found = compared(sides[0], late)
    assert lost_and_added(found) == [0, 0, 0, 0]
    assert found.content["parts"][0]["forward"]["packets"] > 100
    # The order of the captures does not matter.
    assert lost_and_added(compared(late, sides[0])) == [0, 0, 0, 0]


@pytest.mark.parametrize("late", [0, 1, 2])
def test_octets_are_the_same_in_all_parts(late: int, tmp_path: Path) -> None:
    text = HOSTS_APART.replace("IN_WAN", 'reverse.impair = [{ kind = "bernoulli-loss", rate = 0.05 }]')
    run = Scenario.from_text(re.sub("IN_[A-Z]+", "", text), file="points.toml").run(
        seed=1, captures=["zero", "near", "far"]
    )
    files = []
    for number, name in enumerate(("zero", "near", "far")):
        side = through(packets(run.pcapng(name)), real)
        if number == late:
            side = [one for one in side if one.time_ns > START_NS + 1e9]
        files.append(write(tmp_path / f"{name}.pcap", side))
    found = diagnose_points(files)
    assert [point["name"] for point in found.content["points"]] == ["far", "near", "zero"]
    # Three lines for a packet that all points have, or fewer: none is shown once for each part.
    rows = tracks(found, 0)
    assert len(rows) < 1.1 * max(point["packets"] for point in found.content["points"])
    timeouts = [
        pause["belongs_to"] for one in found.content["connections"] for pause in one["pauses"]
        if pause["cause"] == "retransmission-timeout"
    ]  # fmt: skip
    assert len(timeouts) >= 10
    assert timeouts.count("far–near") >= 0.9 * len(timeouts)


def test_names_of_files_are_no_names_of_ends_or_parts(compared: Callable[..., Points], tmp_path: Path) -> None:
    run = taps(
        re.sub("IN_[A-Z]+", "", HOSTS_APART.replace("IN_WAN", "reverse.impair = [LOSS]")).replace(
            "LOSS", '{ kind = "bernoulli-loss", rate = 0.05 }'
        )
    )
    files = [write(tmp_path / "a.pcap", run.client), write(tmp_path / "b.pcap", run.server)]
    found = diagnose_points(files).content
    assert [point["name"] for point in found["points"]] == ["b-2", "a-1"]
    assert any("belong to the path between b-2 and a-1" in line for line in found["summary"]), found["summary"]
    files = [write(tmp_path / "x–y.pcap", run.client), write(tmp_path / "z.pcap", run.server)]
    assert {point["name"] for point in diagnose_points(files).content["points"]} == {"x-y", "z"}


def test_more_captures_have_fewer_segments_each(lossy: Taps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MOST_SEGMENTS", 1500)
    files = [write(tmp_path / f"{number}.pcap", lossy.client) for number in range(3)]
    for count, most in ((2, 1500), (3, 1000)):
        for point in diagnose_points(files[:count]).content["points"]:
            assert point["left_out"] == len(lossy.client) - most


def test_an_outage_that_new_data_ends_belongs_to_its_part(compared: Callable[..., Points]) -> None:
    """A tail loss probe sends new data (RFC 8985 §7.3): no earlier copy of it was lost."""
    text = PATH.replace("FORWARD", "").replace("REVERSE", "").partition("count = 2")[0]
    event = '[[at]]\ntime = "{} s"\nset = {{ "link.wan.up" = {} }}\n'
    run = taps(text + event.format(2, "false") + event.format(2.5, "true"))
    (connection,) = compared(run.client, run.server).content["connections"]
    pauses = [one for one in connection["pauses"] if one["cause"] == "retransmission-timeout"]
    assert len(pauses) > 1
    assert {one["belongs_to"] for one in pauses} == {"client–server"}, pauses
