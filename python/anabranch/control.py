"""Congestion controls written in Python, for the simulator.

A control is a class that derives from :class:`CongestionControl`. Each event calls a method, which
sets ``cwnd`` and optionally ``ssthresh`` and ``pacing_rate``:

    >>> from anabranch import CongestionControl, Scenario
    >>> class Aimd(CongestionControl):
    ...     name = "aimd"
    ...     def __init__(self, start, beta=0.5):
    ...         super().__init__(start)
    ...         self.beta = beta
    ...     def on_ack(self, ack):
    ...         if not ack.in_recovery and ack.cwnd_limited:
    ...             self.cwnd += self.smss * ack.acked / self.cwnd
    ...     def on_congestion(self, event):
    ...         self.ssthresh = self.cwnd = max(self.beta * self.cwnd, 2 * self.smss)
    ...     def on_rto(self, event):
    ...         self.ssthresh, self.cwnd = max(event.in_flight / 2, 2 * self.smss), self.smss
    >>> path = Scenario(duration="2 s").link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
    >>> mine = path.flow("main", source="S", target="R").with_controls(Aimd)
    >>> mine.set("flow.main.cc", {"kind": "aimd", "beta": 0.7}).run().flows["main"]["timeouts"]
    0

A call costs some microseconds: a run takes ten to twenty times as long as with a built-in control,
and runs of a sweep share one interpreter. The same control as a Rust type or as an eBPF program has
no such cost and also runs elsewhere (`docs/extending.md`). `anabranch evaluate`, `anabranch stress`
and `anabranch run --control` run it as ``FILE.py:Class``; the live engine and the kernels run no control in Python.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol


class Start(Protocol):
    """Constructor values of a control, in octets."""

    @property
    def smss(self) -> int:
        """A full segment's payload."""

    @property
    def initial_cwnd(self) -> int:
        """The initial window (RFC 6928)."""


class Ack(Protocol):
    """An acknowledgment with new information. Octets, and times in seconds."""

    @property
    def now_s(self) -> float:
        """Time of arrival, from the start of the run."""

    @property
    def acked(self) -> int:
        """Newly acknowledged cumulatively."""

    @property
    def sacked(self) -> int:
        """Newly SACKed (RFC 2018)."""

    @property
    def delivered(self) -> int:
        """Newly delivered: acknowledged or SACKed, each octet once."""

    @property
    def lost(self) -> int:
        """Newly marked lost."""

    @property
    def ce_marked(self) -> int:
        """Newly reported as marked Congestion Experienced (RFC 3168)."""

    @property
    def prior_in_flight(self) -> int:
        """In flight before it."""

    @property
    def in_flight(self) -> int:
        """In flight after it."""

    @property
    def rtt_s(self) -> float | None:
        """The measured round-trip time; ``None`` without a measurement."""

    @property
    def srtt_s(self) -> float:
        """The smoothed round-trip time (RFC 6298); 0 before the first sample."""

    @property
    def min_rtt_s(self) -> float:
        """The smallest round-trip time since the start; 0 before the first sample."""

    @property
    def round(self) -> int:
        """Round trips completed."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window limited the sender in the last round trip (RFC 7661 §4.2)."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender."""

    @property
    def in_recovery(self) -> bool:
        """Whether fast recovery is in progress."""


class Acks(Protocol):
    """The sum of the acknowledgments of a round trip, or of ``every`` of them. Octets, and times in seconds."""

    @property
    def now_s(self) -> float:
        """Time of the last one, from the start of the run."""

    @property
    def duration_s(self) -> float:
        """Time since the last of the previous sum, or since the start of the run."""

    @property
    def acks(self) -> int:
        """Their number."""

    @property
    def delivered(self) -> int:
        """Newly delivered: acknowledged or SACKed, each octet once."""

    @property
    def lost(self) -> int:
        """Newly marked lost."""

    @property
    def ce_marked(self) -> int:
        """Newly reported as marked Congestion Experienced (RFC 3168)."""

    @property
    def rtt_s(self) -> float | None:
        """The mean of the measured round-trip times; ``None`` without a measurement."""

    @property
    def srtt_s(self) -> float:
        """The smoothed round-trip time (RFC 6298) after the last one."""

    @property
    def min_rtt_s(self) -> float:
        """The smallest round-trip time since the start."""

    @property
    def in_flight(self) -> int:
        """In flight after the last one."""

    @property
    def round(self) -> int:
        """Round trips completed."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window limited the sender in the last round trip (RFC 7661 §4.2)."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender."""

    @property
    def in_recovery(self) -> bool:
        """Whether fast recovery is in progress."""


class Congestion(Protocol):
    """A reduction of the window is due, at most once per round trip."""

    @property
    def now_s(self) -> float:
        """Time of the detection."""

    @property
    def signal(self) -> Literal["loss", "ecn"]:
        """A lost packet, or a mark (RFC 3168)."""

    @property
    def in_flight(self) -> int:
        """In flight just before: FlightSize of RFC 5681 §3.1."""


class Rto(Protocol):
    """The retransmission timer expired (RFC 6298 §5.4)."""

    @property
    def now_s(self) -> float:
        """Time of the expiry."""

    @property
    def in_flight(self) -> int:
        """In flight just before."""

    @property
    def consecutive(self) -> int:
        """1 for the first expiry, 2 for the next without progress between them, and so on."""


class CongestionControl:
    """A congestion control in Python; see :mod:`anabranch.control`.

    A class may also have ``on_recovered(now_s)``, ``on_spurious(now_s)`` (the last reduction was spurious) and
    ``on_idle(idle_s)``; they are called only where they exist.

    With ``every`` the engine sums up acknowledgments and calls :meth:`on_acks` in place of :meth:`on_ack`: once for a
    round trip (``"rtt"``), or after that number of acknowledgments. The run then costs about as much as with a built-in
    control.

    Args:
        start: Values from the engine; other keys than ``kind`` in the scenario follow as keyword arguments.

    Attributes:
        name: Its name in scenarios: ``cc = "NAME"``.
        every: ``None``, ``"rtt"``, or a number of acknowledgments: see above.
        smss: A full segment's payload, in octets.
        cwnd: The congestion window, in octets; above 0.
        ssthresh: The slow start threshold, in octets; ``None`` before the first reduction.
        pacing_rate: In bit/s; ``None`` leaves it to the stack.
    """

    name: ClassVar[str]
    every: ClassVar[Literal["rtt"] | int | None] = None
    smss: int
    cwnd: float
    ssthresh: float | None = None
    pacing_rate: float | None = None

    def __init__(self, start: Start) -> None:
        self.smss = start.smss
        self.cwnd = start.initial_cwnd

    def on_ack(self, ack: Ack) -> None:
        """Process an acknowledgment with new information."""
        raise NotImplementedError

    def on_acks(self, acks: Acks) -> None:
        """Process the sum of several acknowledgments; only with ``every``."""
        raise NotImplementedError

    def on_congestion(self, event: Congestion) -> None:
        """Reduce the window."""
        raise NotImplementedError

    def on_rto(self, event: Rto) -> None:
        """Reduce the window after a timeout; the engine retransmits."""
        raise NotImplementedError
