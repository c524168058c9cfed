"""Congestion controls written in Python."""

from __future__ import annotations

import pickle

import pytest

from anabranch import CongestionControl, Scenario, ScenarioError, UserError
from anabranch.control import Ack, Acks, Congestion, Rto, Start
from anabranch.control_errors import described


class Fixed(CongestionControl):
    """A constant window."""

    name = "fixed"

    def __init__(self, start: Start, segments: int = 10) -> None:
        super().__init__(start)
        self.cwnd = segments * start.smss

    def on_ack(self, ack: Ack) -> None:
        assert ack.acked + ack.sacked > 0
        assert ack.in_flight <= ack.prior_in_flight + self.smss

    def on_congestion(self, event: Congestion) -> None:
        assert event.signal == "loss"

    def on_rto(self, event: Rto) -> None:
        assert event.consecutive > 0


class Reno(CongestionControl):
    """Reno (RFC 5681) that sets cwnd to ssthresh after a loss, and so has slow start only after a timeout."""

    name = "my-reno"

    def on_ack(self, ack: Ack) -> None:
        if ack.in_recovery or not ack.cwnd_limited:
            return
        slow_start = self.ssthresh is None or self.cwnd < self.ssthresh
        self.cwnd += min(ack.acked, self.smss) if slow_start else self.smss * ack.acked / self.cwnd

    def on_congestion(self, event: Congestion) -> None:
        self.ssthresh = self.cwnd = max(event.in_flight / 2, 2 * self.smss)

    def on_rto(self, event: Rto) -> None:
        self.ssthresh, self.cwnd = max(event.in_flight / 2, 2 * self.smss), self.smss


class Broken(Fixed):
    """A control that raises an exception during the run."""

    name = "broken"

    def on_ack(self, ack: Ack) -> None:
        if ack.now_s > 0.5:
            raise ZeroDivisionError("in mid-run")


class Endless(Fixed):
    """A window that is not a number."""

    name = "endless"

    def on_ack(self, ack: Ack) -> None:
        self.cwnd = float("nan")


PATH = (
    Scenario("A path", duration="5 s")
    .link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms", queue={"kind": "drop-tail", "limit": "1 bdp"})
    .flow("main", source="S", target="R", stack="rfc")
)


def test_throughput_is_window_over_round_trip_time() -> None:
    """Below the path's rate, twice the window gives twice the throughput (RFC 6349 §3.3.1)."""
    mine = PATH.with_controls(Fixed)
    ten, twenty = (mine.set("flow.main.cc", {"kind": "fixed", "segments": n}).run().flows["main"] for n in (10, 20))
    assert (twenty["goodput_mbit_s"] or 0) == pytest.approx(2 * (ten["goodput_mbit_s"] or 0), rel=0.03)
    # 10 segments of 1,448 bytes in 40 ms plus the serialization of one segment.
    assert (ten["goodput_mbit_s"] or 0) == pytest.approx(10 * 1448 * 8 / 0.0412 / 1e6, rel=0.05)


def test_reno_in_python_resembles_the_built_in_one() -> None:
    mine = PATH.with_controls(Reno).set("flow.main.cc", "my-reno").run()
    theirs = PATH.set("flow.main.cc", "reno").run()
    ours, built_in = (run.flows["main"]["goodput_mbit_s"] or 0 for run in (mine, theirs))
    assert ours == pytest.approx(built_in, rel=0.05)
    assert mine.digest == PATH.with_controls(Reno).set("flow.main.cc", "my-reno").run().digest


SUMS: list[tuple[int, int, float, int]] = []
"""Acknowledgments, octets, duration and round of each call of `Summed`."""


class Summed(Fixed):
    """A constant window that records the sums of acknowledgments."""

    name = "summed"

    def on_ack(self, ack: Ack) -> None:
        raise AssertionError("not with `every`")

    def on_acks(self, acks: Acks) -> None:
        SUMS.append((acks.acks, acks.delivered, acks.duration_s, acks.round))
        assert acks.rtt_s is None or acks.rtt_s >= acks.min_rtt_s


class PerRoundTrip(Summed):
    """A sum for each round trip."""

    every = "rtt"


class PerThree(Summed):
    """A sum for every three acknowledgments."""

    every = 3


def test_acknowledgments_are_summed_up_per_round_trip() -> None:
    SUMS.clear()
    run = PATH.with_controls(PerRoundTrip).set("flow.main.cc", "summed").run()
    rounds = [one[3] for one in SUMS]
    assert rounds == sorted(set(rounds))
    # 10 segments of 1,448 bytes in each round trip of 41 ms.
    for acks, delivered, duration_s, _ in SUMS[2:]:
        assert delivered == 10 * 1448
        assert duration_s == pytest.approx(0.0412, rel=0.05)
        assert 5 <= acks <= 10
    # No acknowledgment is lost: the last round trip may be incomplete.
    assert sum(one[1] for one in SUMS) == pytest.approx(run.flows["main"]["delivered_bytes"], abs=20 * 1448)


def test_acknowledgments_are_summed_up_by_number() -> None:
    SUMS.clear()
    PATH.with_controls(PerThree).set("flow.main.cc", "summed").run()
    assert {one[0] for one in SUMS} == {3}


@pytest.mark.parametrize("every", [0, -1, 1.5, "ack", True, []])
def test_a_wrong_number_of_acknowledgments_is_refused(every: object) -> None:
    class Wrong(Summed):
        name = "wrong"

    Wrong.every = every  # type: ignore[assignment]
    if every is True:
        # A truth value is the number 1, as everywhere in Python.
        PATH.with_controls(Wrong).set("flow.main.cc", "wrong").set("duration", "0.1 s").run()
        return
    with pytest.raises(ValueError, match=r"Wrong\.every is .*; expected None, \"rtt\", or a number of acknowledgments"):
        PATH.with_controls(Wrong).set("flow.main.cc", "wrong").run()


def test_an_exception_of_a_control_ends_the_run() -> None:
    with pytest.raises(ZeroDivisionError, match="in mid-run"):
        PATH.with_controls(Broken).set("flow.main.cc", "broken").run()
    with pytest.raises(ValueError, match=r"Endless\.cwnd is NaN; expected a number above 0"):
        PATH.with_controls(Endless).set("flow.main.cc", "endless").run()
    with pytest.raises(TypeError, match="segmets"):
        PATH.with_controls(Fixed).set("flow.main.cc", {"kind": "fixed", "segmets": 1}).run()


def test_a_value_error_of_a_control_keeps_its_type_and_place() -> None:
    class Unlucky(Fixed):
        name = "unlucky"

        def on_ack(self, ack: Ack) -> None:
            raise ValueError("bad luck")

    class Words(Fixed):
        name = "words"

        def on_ack(self, ack: Ack) -> None:
            self.cwnd = "ten"  # type: ignore[assignment]

    with pytest.raises(ValueError, match="bad luck") as raised:
        PATH.with_controls(Unlucky).set("flow.main.cc", "unlucky").run()
    assert not isinstance(raised.value, UserError)
    assert raised.traceback[-1].name == "on_ack"
    assert described(raised.value).startswith("ValueError: bad luck (Unlucky.on_ack, test_control.py:")
    with pytest.raises(TypeError, match=r"^Words\.cwnd is 'ten'; expected a number above 0$"):
        PATH.with_controls(Words).set("flow.main.cc", "words").run()


def test_a_missing_method_is_named() -> None:
    class Bare(CongestionControl):
        name = "bare"

    with pytest.raises(NotImplementedError) as raised:
        PATH.with_controls(Bare).set("flow.main.cc", "bare").run()
    assert described(raised.value) == "NotImplementedError: Bare has no method on_ack"


def test_a_sweep_runs_it_and_stores_nothing(tmp_path: object) -> None:
    base = PATH.with_controls(Reno)
    swept = base.sweep({"flow.main.cc": ["my-reno", "reno"]})
    assert len(swept.frame) == 2
    with pytest.raises(UserError, match="out"):
        base.sweep({"flow.main.cc": ["my-reno", "reno"]}, out=str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        PATH.with_controls(Broken).sweep({"flow.main.cc": ["broken", "reno"]})


def test_names() -> None:
    class Nameless(Fixed):
        name = ""

    class Cubic(Fixed):
        name = "cubic"

    with pytest.raises(UserError, match="small letters"):
        PATH.with_controls(Nameless)
    with pytest.raises(UserError, match="'cubic', which is taken"):
        PATH.with_controls(Cubic)
    with pytest.raises(UserError, match="'fixed', which is taken"):
        PATH.with_controls(Fixed, Fixed)
    with pytest.raises(UserError, match="no class"):
        PATH.with_controls(3)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="did you mean `my-reno`"):
        PATH.with_controls(Reno).set("flow.main.cc", "my-ren")


def test_a_scenario_carries_its_controls() -> None:
    mine = PATH.with_controls(Reno)
    assert mine != PATH
    assert pickle.loads(pickle.dumps(mine)) == mine  # noqa: S301
    with pytest.raises(UserError, match="live engine"):
        mine.run_live()
