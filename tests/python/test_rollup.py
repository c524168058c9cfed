"""`anabranch diagnose` of many connections: the bad ones and what they have in common, groups, outliers, complaints."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, diagnose
from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.rollup import _most, roll_up
from anabranch.diagnosis.text import overview
from anabranch.report.capture_output import html_report

from .browser import View, asked, needs_chromium
from .command import Call

LINK = """
[link.s{number}]
between = ["R", "S{number}"]
rate = "100 Mbit/s"
delay = "10 ms"
{impaired}
"""
FLOW = """
[flow.f{number}]
from = "C"
to = "S{server}"
start = "{start} s"
workload = {{ kind = "file", size = "30 kB" }}
"""
LOSSY = 4


def scenario() -> str:
    """Sixty files from four servers; the path to one of them loses a quarter of the packets."""
    draw = random.Random(4)  # noqa: S311 - a fixed seed
    text = 'duration = "30 s"\n[link.tap]\nbetween = ["C", "R"]\nrate = "1 Gbit/s"\ndelay = "1 ms"\n'
    for number in range(1, 5):
        impaired = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.25 }]' if number == LOSSY else ""
        text += LINK.format(number=number, impaired=impaired)
    for number in range(60):
        start = f"{draw.uniform(0, 25):.3f}"
        text += FLOW.format(number=number, server=draw.choice([1, 1, 2, 2, 3, 3, 3, LOSSY]), start=start)
    return text


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("many") / "many.pcapng"
    file.write_bytes(Scenario.from_text(scenario(), file="many.toml").run(captures=["tap"]).pcapng("tap"))
    return file


@pytest.fixture(scope="module")
def many(capture: Path) -> Diagnosis:
    return diagnose(capture)


@pytest.fixture
def calm(many: Diagnosis) -> Diagnosis:
    """The same connections, none of which failed or lost time."""
    found = copy.deepcopy(many)
    for one in found.content["connections"]:
        one["failure"], one["lost_s"] = None, 0.0
    return found


def fail(document: Diagnosis, numbers: list[int], cause: Any, **named: Any) -> None:
    for one in document.content["connections"]:
        if one["id"] in numbers:
            one.update({"failure": cause, **named})  # type: ignore[typeddict-item]


def test_the_sentence_names_the_server_of_the_bad_connections(many: Diagnosis) -> None:
    found = roll_up(many)
    servers = {one["id"]: one["b"] for one in many.content["connections"]}
    bad = {servers[one["id"]] for one in found["bad"]}
    assert len(bad) == 1
    (server,) = bad
    assert len(found["bad"]) >= 3
    assert found["sentence"].startswith(f"Of 60 connections {len(found['bad'])} are bad: all to {server}")
    first = found["groups"]["server"][0]
    assert (first["key"], first["bad"]) == (server.rpartition(":")[0], len(found["bad"]))
    assert first["retransmitted"] > 0.1


@pytest.mark.parametrize(
    ("capture", "sentence"),
    [
        ("slower", "The only connection neither failed nor lost much time."),
        ("large", "The only connection is bad: by large segments lost."),
    ],
)
def test_a_single_connection_has_its_own_sentence(capture: str, sentence: str) -> None:
    found = diagnose(Path(__file__).parents[2] / "docs" / "captures" / f"{capture}.pcapng.gz")
    assert roll_up(found)["sentence"] == sentence


def test_nothing_in_common_is_not_claimed(calm: Diagnosis) -> None:
    assert roll_up(calm)["sentence"] == "Of 60 connections none failed or lost much time."
    by_server: dict[str, list[int]] = {}
    for one in calm.content["connections"]:
        by_server.setdefault(one["b"], []).append(one["id"])
    some = [ids[0] for ids in by_server.values()]
    fail(calm, some, "refused")
    sentence = roll_up(calm)["sentence"]
    assert sentence.startswith(f"Of 60 connections {len(some)} are bad: ")
    assert " to 10." not in sentence
    # All connections are of one client: that says nothing about the bad ones.
    assert "from" not in sentence
    assert sentence.endswith("all by refused.")


def test_the_sentence_counts_causes_and_good_peers(calm: Diagnosis) -> None:
    server = calm.content["connections"][0]["b"]
    own = [one["id"] for one in calm.content["connections"] if one["b"] == server]
    fail(calm, own[:3], "syn-loss")
    fail(calm, own[3:5], "refused")
    sentence = roll_up(calm)["sentence"]
    assert f"all to {server} (which has {len(own) - 5} good ones)" in sentence
    assert "3 by syn loss and 2 by refused" in sentence


def test_a_time_in_common_is_named(calm: Diagnosis) -> None:
    content = calm.content
    early = [one["id"] for one in content["connections"] if 5 < one["start_s"] - (content["start_s"] or 0) < 8]
    assert len(early) >= 3
    fail(calm, early, "syn-loss")
    assert "begun between" in roll_up(calm)["sentence"]


def test_groups_add_up(many: Diagnosis) -> None:
    found = roll_up(many)
    for groups in found["groups"].values():
        assert sum(group["connections"] for group in groups) == 60
        assert sum(group["bad"] for group in groups) == len(found["bad"])
        for group in groups:
            assert sum(group["limits"].values()) <= 1.01
    times = [float(group["key"]) for group in found["groups"]["time"]]
    assert times == sorted(times)


def test_an_outlier_differs_from_its_peers(calm: Diagnosis) -> None:
    content = calm.content
    server = max({one["b"] for one in content["connections"]}, key=[one["b"] for one in content["connections"]].count)
    own = [one for one in content["connections"] if one["b"] == server]
    own[5]["duration_s"] = 40 * own[4]["duration_s"]
    outliers = roll_up(calm)["outliers"]
    (found,) = [one for one in outliers if one["server"] == server and one["measure"] == "duration_s"]
    assert found["id"] == own[5]["id"]
    assert found["value"] > 20 * found["usual"]
    assert found["peers"] == len(own) - 1


def test_the_screen_begins_with_the_sentence(anabranch: Call, capture: Path) -> None:
    done = anabranch("diagnose", capture)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    # The name of the file may be long.
    assert any(line.startswith("Of 60 connections ") for line in lines[1:3])
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 48


@pytest.mark.parametrize("by", ["server", "client", "port", "time"])
def test_sums_by_a_key(anabranch: Call, capture: Path, by: str) -> None:
    done = anabranch("diagnose", capture, "--by", by)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] or done.out
    assert max(map(len, done.out.splitlines())) <= 80
    document = json.loads(anabranch("diagnose", capture, "--by", by, "--json").out)
    assert set(document["groups"]) == {"server", "client", "port", "time"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "servr"), '--by servr: expected server, client, port or time\n  did you mean "server"?'),
        (("--by", "server", "--out", "x"), "--by server prints sums of all connections, and --out is given"),
        (("--by", "server", "--connection", "1"), "--connection is given"),
    ],
)
def test_a_bad_key_is_one_message(anabranch: Call, capture: Path, options: tuple[str, ...], message: str) -> None:
    done = anabranch("diagnose", capture, *options)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_a_complaint_is_answered_beside_the_others(anabranch: Call, capture: Path, many: Diagnosis) -> None:
    bad = roll_up(many)["bad"]
    connections = {one["id"]: one for one in many.content["connections"]}
    host = connections[bad[0]["id"]]["b"].rpartition(":")[0]
    own = sum(one["b"].startswith(f"{host}:") for one in connections.values())
    done = anabranch("diagnose", capture, "--host", host)
    expected = f"{own} of 60 connections match: {len(bad)} are bad. Bad among the other {60 - own}: none."
    assert expected in done.out.splitlines()


def test_slowest_lists_the_connections_that_lost_most(anabranch: Call, capture: Path, many: Diagnosis) -> None:
    ranked = sorted(many.content["connections"], key=lambda one: (-one["lost_s"], -one["duration_s"], one["id"]))
    done = anabranch("diagnose", capture, "--slowest", "--json")
    assert [one["id"] for one in json.loads(done.out)["connections"]] == [one["id"] for one in ranked[:10]]
    screen = anabranch("diagnose", capture, "--slowest").out
    assert screen.index(f"\n{ranked[0]['id']:>5}  ") < screen.index(f"\n{ranked[1]['id']:>5}  ")
    assert f"Connection {ranked[0]['id']}: " in screen


def test_a_time_names_the_pauses_of_several_connections(many: Diagnosis) -> None:
    found = copy.deepcopy(many)
    pauses = [one for one in found.content["connections"] if any(way["stalls"] for _, way in directions(one))]
    at = pauses[0]["start_s"]
    text = "\n".join(overview(found, at))
    assert "  then: " in text


def test_the_report_has_a_heat_map_and_tables(many: Diagnosis) -> None:
    page = html_report(many)
    assert "Bad connections by server and by the time of their start (%)" in page
    assert "By server: 4" in page
    assert "By time: " in page


@needs_chromium
def test_the_report_fits_a_telephone(many: Diagnosis, tmp_path: Path) -> None:
    script = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth;"
    assert asked(html_report(many), script, tmp_path, View(400, 800))


def test_the_most_frequent_value_takes_no_comparison_of_all_pairs(calm: Diagnosis) -> None:
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    one = calm.content["connections"][0]
    numbers = iter(range(1000))
    assert _most([one] * 1000, lambda _: Name(next(numbers))) is None
    assert compared < 10_000
    assert _most([one] * 10, lambda _: "x") == "x"
