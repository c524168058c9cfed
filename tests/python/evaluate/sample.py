"""A small evaluation for tests: some checks, two seeds, and controls with faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.evaluate import control_mixed, control_single, evaluation, queue_checks
from anabranch.evaluate.evaluation import Evaluation, Options
from anabranch.evaluate.runs import Finished
from anabranch.evaluate.subject import find
from anabranch.sweep.points import Points

ALL = control_single.CHECKS + control_mixed.CHECKS + queue_checks.CHECKS

BAD = """
from anabranch import CongestionControl


class Base(CongestionControl):
    def on_ack(self, ack):
        self.cwnd += self.smss * ack.acked / self.cwnd

    def on_congestion(self, event):
        self.ssthresh = self.cwnd = max(self.cwnd / 2, 2 * self.smss)

    def on_rto(self, event):
        self.ssthresh, self.cwnd = max(self.cwnd / 2, 2 * self.smss), self.smss


class Good(Base):
    name = "good"


class Fixed(Base):
    name = "fixed-window"

    def __init__(self, start):
        super().__init__(start)
        self.cwnd = 10_000 * self.smss

    def on_ack(self, ack):
        pass

    on_congestion = on_rto = on_ack


class Raises(Base):
    name = "raises"

    def on_ack(self, ack):
        if ack.now_s > 2:
            raise KeyError("no state")
        super().on_ack(ack)


class Nan(Base):
    name = "not-a-number"

    def on_ack(self, ack):
        self.cwnd = float("nan")


class Endless(Base):
    name = "endless"

    def on_ack(self, ack):
        while ack.now_s > 2:
            pass


class Waits(Base):
    name = "waits"

    def on_ack(self, ack):
        import time

        if 2 < ack.now_s < 2.2:
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                time.sleep(0.001)
                sum(range(5_000))
        super().on_ack(ack)


class Sleeps(Base):
    name = "sleeps"

    def on_ack(self, ack):
        import time

        while ack.now_s > 2:
            time.sleep(60)


class Exits(Base):
    name = "exits"

    def on_ack(self, ack):
        import os

        os.kill(os.getpid(), 9)
"""


def choose(monkeypatch: pytest.MonkeyPatch, *names: str, seeds: int = 2) -> None:
    """Limit evaluations to some checks and seeds."""
    chosen = tuple(check for check in ALL if check.id in names)
    assert len(chosen) == len(names)
    monkeypatch.setattr(evaluation, "checks_of", lambda _: chosen)
    monkeypatch.setattr(evaluation, "QUICK_SEEDS", seeds)


def run(subject: str, against: tuple[str, ...] = ("cubic",)) -> Evaluation:
    """A quick evaluation without a store."""
    return evaluation.evaluate(find(subject), Options(against, is_quick=True), Finished(Points(None, Path())))


def bad(folder: Path, name: str) -> str:
    """A control with a fault, as an argument of the command."""
    path = folder / "bad_controls.py"
    path.write_text(BAD, encoding="utf-8")
    return f"{path}:{name}"
