"""`anabranch diagnose OLD NEW --compare`: what changed, and nothing that lies within its interval."""

from __future__ import annotations

import copy
import json
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.difference import Comparison, compare, hodges_lehmann, ratio

from .command import Call

TEXT = """
duration = "20 s"
[link.tap]
between = ["C", "R"]
rate = "1 Gbit/s"
delay = "1 ms"
[link.path]
between = ["R", "S"]
rate = "50 Mbit/s"
delay = "DELAY ms"
forward.impair = [{ kind = "bernoulli-loss", rate = LOSS }]
forward.queue = { kind = "drop-tail", limit = "1 MB" }
"""
FLOW = """
[flow.f{number}]
from = "C"
to = "S"
start = "{start:.3f} s"
transport = {{ receive_window = "{window}" }}
workload = {{ kind = "file", size = "{size} kB" }}
"""


def capture(
    folder: Path,
    name: str,
    *,
    seed: int = 1,
    delay: int = 10,
    loss: float = 0.005,
    window: str = "200 kB",
    count: int = 12,
) -> Path:
    """Files from one server, of different sizes, one after the other."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    text = TEXT.replace("DELAY", str(delay)).replace("LOSS", str(loss))
    for number in range(count):
        start, size = number * 1.2 + draw.uniform(0, 0.3), draw.randrange(100, 400)
        text += FLOW.format(number=number, start=start, size=size, window=window)
    file = folder / f"{name}.pcapng"
    file.write_bytes(Scenario.from_text(text, file="x.toml").run(seed=seed, captures=["tap"]).pcapng("tap"))
    return file


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    return diagnose(capture(tmp_path_factory.mktemp("old"), "old"))


def changed(found: Comparison) -> dict[str, float]:
    """The changed measures and their differences."""
    return {
        one["measure"]: one["difference"] or 0.0
        for group in found["groups"]
        for one in group["measures"]
        if one["verdict"] == "changed"
    }


def test_a_longer_path_is_the_change(old: Diagnosis, tmp_path: Path) -> None:
    found = compare(old, diagnose(capture(tmp_path, "new", seed=2, delay=30)))
    names = changed(found)
    assert names["least round trip"] == pytest.approx(40, abs=2)
    assert {"median round trip", "time to open"} <= names.keys()
    assert not {"lost segments", "failed connections", "receiver's window", "answer time of the server"} & names.keys()
    (group,) = found["groups"]
    assert (group["old"], group["new"]) == (12, 12)
    for one in group["measures"]:
        if one["verdict"] == "changed":
            assert one["low"] is not None
            assert one["high"] is not None
            assert one["low"] <= (one["difference"] or 0) <= one["high"]
            assert one["low"] > 0 or one["high"] < 0


def test_more_loss_is_the_change(old: Diagnosis, tmp_path: Path) -> None:
    names = changed(compare(old, diagnose(capture(tmp_path, "new", seed=3, loss=0.05))))
    assert names["lost segments"] == pytest.approx(4.5, abs=1.5)
    assert names["goodput"] < 0
    assert "least round trip" not in names


def test_a_smaller_window_is_the_change(old: Diagnosis, tmp_path: Path) -> None:
    names = changed(compare(old, diagnose(capture(tmp_path, "new", seed=4, window="10 kB"))))
    assert names["limit receive-window"] > 20
    assert names["goodput"] < 0
    assert "lost segments" not in names


def test_the_same_path_has_no_change(old: Diagnosis, tmp_path: Path) -> None:
    for seed in range(5, 10):
        found = compare(old, diagnose(capture(tmp_path, f"new{seed}", seed=seed)))
        assert changed(found) == {}
        assert found["sentence"] == "Nothing differs by more than its interval."


def test_connections_without_a_handshake_are_no_change(old: Diagnosis) -> None:
    new = copy.deepcopy(old)
    for one in new.content["connections"]:
        one["handshake"] = "missed"
        for _, way in directions(one):
            way["limits_s"]["application"] += way["limits_s"]["handshake"]
            way["limits_s"]["handshake"] = 0.0
    (group,) = compare(old, new)["groups"]
    found = {one["measure"]: one for one in group["measures"]}
    assert (found["time to open"]["new"], found["time to open"]["verdict"]) == (None, "undecided")
    assert {one["verdict"] for name, one in found.items() if name.startswith("limit ")} == {"undecided"}
    assert not changed(compare(old, new))
    # One such connection among the others counts for its goodput alone.
    new = copy.deepcopy(old)
    new.content["connections"][0]["handshake"] = "missed"
    new.content["connections"][0]["directions"]["a_to_b"]["limits_s"]["handshake"] = 0.0
    (group,) = compare(old, new)["groups"]
    assert not [one for one in group["measures"] if one["verdict"] == "changed"]
    again = compare(new, new)
    assert all(one["difference"] in (0, None) for one in again["groups"][0]["measures"])


def test_single_connections_are_compared_by_their_paths(tmp_path: Path) -> None:
    one = diagnose(capture(tmp_path, "one", count=1))
    names = changed(compare(one, diagnose(capture(tmp_path, "two", count=1, delay=40))))
    assert names == {"least round trip": pytest.approx(60, abs=2)}
    same = compare(one, one)
    assert changed(same) == {}
    assert any(each["verdict"] == "undecided" for each in same["groups"][0]["measures"])


def test_servers_are_compared_by_port_if_their_address_changed(old: Diagnosis, tmp_path: Path) -> None:
    moved = diagnose(old["file"])
    for one in moved.content["connections"]:
        one["b"] = one["b"].replace("10.0.0.", "192.0.2.")
    assert compare(old, moved)["by"] == "port"
    for one in moved.content["connections"]:
        one["b"] = "192.0.2.1:9"
    with pytest.raises(UserError, match=r"no server and no port in common\n  the first has 10\.0\.0"):
        compare(old, moved)


def test_the_command_prints_and_writes_json(anabranch: Call, old: Diagnosis, tmp_path: Path) -> None:
    new = capture(tmp_path, "new", seed=2, delay=30)
    done = anabranch("diagnose", old["file"], new, "--compare")
    assert done.status == 0, done.err
    assert max(len(line) for line in done.out.splitlines() if "/" not in line) <= 80
    assert "least round trip 22 ms to 62 ms" in done.out
    assert "within the interval: " in done.out
    document = json.loads(anabranch("diagnose", old["file"], new, "--compare", "--json").out)
    assert document["format"] == 1
    assert changed(document)


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (1, (), "--compare: expected two captures, the old and the new one, and 1 are given"),
        (3, (), "and 3 are given"),
        (2, ("--by", "server"), "--compare compares all connections of two captures, and --by is given"),
        (2, ("--advise",), "and --advise is given"),
        (2, ("--port", "9"), "has no such connection"),
    ],
)
def test_bad_input_is_one_message(
    anabranch: Call, old: Diagnosis, count: int, options: tuple[str, ...], message: str
) -> None:
    done = anabranch("diagnose", *[old["file"]] * count, "--compare", *options)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("error: ") == 1


def test_intervals_hold_at_their_level() -> None:
    draw = random.Random(7)  # noqa: S311 - no secret
    z = statistics.NormalDist().inv_cdf(0.975)
    missed = 0
    for _ in range(400):
        first = [draw.expovariate(1.0) for _ in range(12)]
        second = [draw.expovariate(1.0) + 0.5 for _ in range(15)]
        found = hodges_lehmann(first, second, z)
        assert found.low is not None
        assert found.high is not None
        missed += not found.low <= 0.5 <= found.high
    # Binomial with 5 %: fewer than 36 of 400 in 99.9 %.
    assert missed < 36


def test_shares_of_clustered_losses_have_wider_intervals() -> None:
    single = ratio([1.0] * 10, [100.0] * 10)
    clustered = ratio([10.0, *[0.0] * 9], [100.0] * 10)
    assert single[0] == clustered[0] == 0.01
    assert (clustered[1] or 0) > 10 * (single[1] or 0)
    assert ratio([0.0] * 4, [10.0] * 4)[1] == pytest.approx(0.25 / 1600)
    assert ratio([], []) == (None, None)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_shift_is_the_negative_of_the_shift_back(first: list[float], second: list[float]) -> None:
    one, other = hodges_lehmann(first, second, 1.96), hodges_lehmann(second, first, 1.96)
    assert one.difference == pytest.approx(-other.difference, abs=1e-6)
    if one.low is not None and one.high is not None and other.low is not None:
        assert one.low <= one.difference <= one.high
        assert other.low == pytest.approx(-one.high, abs=1e-6)
