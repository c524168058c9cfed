"""A run that stops at each step and waits for an action: the simulator under the control of a learner.

The run has a thread. The engine sums up the acknowledgments of a step; the congestion control, in Python, hands the sum
over and waits for the next window. Needs no further package.
"""

from __future__ import annotations

import atexit
import math
import threading
import weakref
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from anabranch.control import Acks, CongestionControl, Rto, Start
from anabranch.errors import UserError

if TYPE_CHECKING:
    from anabranch.control import Congestion
    from anabranch.scenario import Scenario

NAME = "learned"
"""Name of the control in scenarios."""
FLOW = "main"
"""The flow that the learner controls."""
MIN_PACKETS, MAX_PACKETS = 2, 1 << 16
"""Bounds of the window."""


@dataclass(frozen=True)
class Path:
    """A path with one bottleneck.

    Attributes:
        rate_mbit_s: Its rate.
        delay_ms: One-way propagation delay.
        buffer_bdp: Length of its drop-tail queue, in bandwidth-delay products.
        loss: Share of packets lost at random, below 1.

    Raises:
        UserError: A value is out of range.
    """

    rate_mbit_s: float
    delay_ms: float
    buffer_bdp: float = 1.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate_mbit_s", "delay_ms", "buffer_bdp"):
            value = getattr(self, name)
            is_valid = math.isfinite(value) and (value >= 0 if name == "delay_ms" else value > 0)
            if not is_valid:
                expected = "a number from 0" if name == "delay_ms" else "a number above 0"
                raise UserError(f"{name} is {value}; expected {expected}")
        if not 0 <= self.loss < 1:
            raise UserError(f"loss is {self.loss}; expected a share from 0 and below 1")

    def scenario(self, seed: int = 1, duration_s: float = 3600.0) -> Scenario:
        """The scenario with one flow from A to B."""
        from anabranch.scenario import Scenario

        impair = [{"kind": "bernoulli-loss", "rate": self.loss}] if self.loss else []
        queue = {"kind": "drop-tail", "limit": f"{self.buffer_bdp:.6f} bdp"}
        link = {"between": ["A", "B"], "rate": f"{self.rate_mbit_s:.6f} Mbit/s", "delay": f"{self.delay_ms:.6f} ms"}
        flow = {"from": "A", "to": "B", "stack": "rfc"}
        document: dict[str, Any] = {
            "duration": f"{duration_s:g} s",
            "seed": seed,
            "link": {"path": {**link, "forward": {"queue": queue, "impair": impair}}},
            "flow": {FLOW: flow},
        }
        return Scenario.from_dict(document)


@dataclass(frozen=True)
class Step:
    """The sum of a step. Octets, and times in seconds.

    Attributes:
        time_s: Its end, from the start of the run.
        duration_s: Its duration.
        delivered: Octets newly delivered.
        lost: Octets newly marked lost.
        ce_marked: Octets newly reported as marked Congestion Experienced.
        rtt_s: The mean of the measured round-trip times; 0 without a measurement.
        min_rtt_s: The smallest round-trip time since the start.
        in_flight: Octets in flight at its end.
        cwnd: The window at its end.
        smss: A full segment's payload.
        timeouts: Expiries of the retransmission timer.
    """

    time_s: float
    duration_s: float
    delivered: int
    lost: int
    ce_marked: int
    rtt_s: float
    min_rtt_s: float
    in_flight: int
    cwnd: float
    smss: int
    timeouts: int


_OPEN: weakref.WeakSet[Session] = weakref.WeakSet()
"""Sessions that wait for an action. The interpreter ends none of their threads by itself."""


@atexit.register
def _close_all() -> None:
    for session in tuple(_OPEN):
        session.close()


class _Stopped(Exception):  # noqa: N818 - no error
    """The session is closed: ends the run."""


class Session:
    """A run whose window the caller sets.

    Args:
        scenario: The scenario; its flow ``main`` gets the control.
        seed: The seed.
        every: The end of a step: ``"rtt"``, a round trip; or a number of acknowledgments.
    """

    def __init__(self, scenario: Scenario, seed: int, every: Literal["rtt"] | int = "rtt") -> None:
        self._steps: SimpleQueue[Step | BaseException | None] = SimpleQueue()
        self._windows: SimpleQueue[float | None] = SimpleQueue()
        self._is_over = False
        control = _control(self._steps, self._windows, every)
        run = scenario.with_controls(control).set(f"flow.{FLOW}.cc", {"kind": NAME})
        self._thread = threading.Thread(
            target=_run, args=(run, seed, self._steps), name="anabranch-session", daemon=True
        )
        self._thread.start()
        _OPEN.add(self)

    def __del__(self) -> None:
        # Without a thread, the scenario was refused.
        if hasattr(self, "_thread"):
            self.close()

    def first(self) -> Step | None:
        """The step with the initial window; ``None`` if the run ends in it.

        Raises:
            ScenarioError: The scenario is wrong.
        """
        return self._take()

    def advance(self, packets: float) -> Step | None:
        """Set the window, in packets, and run the next step; ``None`` at the end of the run.

        Raises:
            ScenarioError: The scenario is wrong.
        """
        if self._is_over:
            return None
        self._windows.put(packets)
        return self._take()

    def _take(self) -> Step | None:
        step = self._steps.get()
        if isinstance(step, Step):
            return step
        self._is_over = True
        self._thread.join()
        if step is not None:
            raise step
        return None

    def close(self) -> None:
        """End the run."""
        if not self._is_over:
            self._is_over = True
            self._windows.put(None)
            self._thread.join()


def _run(scenario: Scenario, seed: int, steps: SimpleQueue[Step | BaseException | None]) -> None:
    """Run to the end. The thread holds no reference to its session, so that a forgotten session closes."""
    try:
        scenario.run(seed=seed, digest=False)
    except _Stopped:
        pass
    except BaseException as error:
        steps.put(error)
        return
    steps.put(None)


def _control(
    steps: SimpleQueue[Step | BaseException | None], windows: SimpleQueue[float | None], every: Literal["rtt"] | int
) -> type[CongestionControl]:
    """The control of one session."""

    class Learned(CongestionControl):
        """A window that another thread sets at the end of each step."""

        name = NAME

        def __init__(self, start: Start) -> None:
            super().__init__(start)
            self.timeouts = 0

        def on_acks(self, acks: Acks) -> None:
            step = Step(
                time_s=acks.now_s,
                duration_s=acks.duration_s,
                delivered=acks.delivered,
                lost=acks.lost,
                ce_marked=acks.ce_marked,
                rtt_s=acks.rtt_s or 0.0,
                min_rtt_s=acks.min_rtt_s,
                in_flight=acks.in_flight,
                cwnd=self.cwnd,
                smss=self.smss,
                timeouts=self.timeouts,
            )
            self.timeouts = 0
            steps.put(step)
            window = windows.get()
            if window is None:
                raise _Stopped
            self.cwnd = self.smss * min(max(window, MIN_PACKETS), MAX_PACKETS)

        def on_congestion(self, event: Congestion) -> None:
            """Leave the reduction to the learner, whose step reports the loss or the mark."""

        def on_rto(self, event: Rto) -> None:  # noqa: ARG002 - the engine's
            # RFC 5681 §3.1: the loss window is one full segment.
            self.timeouts += 1
            self.cwnd = self.smss

    Learned.every = every
    return Learned
