"""The scenarios of the reference vectors, each about one behaviour."""

from __future__ import annotations

from dataclasses import dataclass

STACK = "linux-6.18"
"""The profile of all vectors: a released profile never changes."""
RTT_S = 0.04
"""Round-trip time without a queue."""
SMSS = 1448
"""Payload of a full segment, in octets."""
ECN_KINDS = {"dctcp": "accecn", "prague": "l4s"}
"""Kind of ECN by control; RFC 3168 for the others."""

_PATH = """\
title = "{title}"
duration = "{duration} s"

[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
forward.queue = {queue}
"""
_FLOW = """
[flow.main]
from = "A"
to = "B"
stack = "{stack}"
cc = "{control}"
"""
_DEEP = '{ kind = "drop-tail", limit = "8 bdp" }'
_ENDLESS = '{ kind = "drop-tail", limit = "40 bdp" }'
_LIMITED = 'receive_window = "90 kB"'
"""A receive window of 1.8 BDP: the queue stays short, so that nothing but the event of the scenario happens."""
_SHALLOW = '{ kind = "drop-tail", limit = "1 bdp" }'


@dataclass(frozen=True)
class Vector:
    """A scenario.

    Attributes:
        name: Its name.
        about: Its subject, and the field's rule for it.
        duration_s: Its duration.
        queue: The queue at the bottleneck.
        path: Further lines of the link.
        flow: Further lines of the flow.
        transport: Switches of the flow's TCP.
        changes: Further tables.
        is_ecn: Whether the flow uses ECN.
    """

    name: str
    about: str
    duration_s: float
    queue: str = _DEEP
    path: str = ""
    flow: str = ""
    transport: str = ""
    changes: str = ""
    is_ecn: bool = False

    def text(self, control: str) -> str:
        """The scenario file for a control."""
        switches = [f'ecn = "{ECN_KINDS.get(control, "rfc3168")}"'] if self.is_ecn else []
        switches += [self.transport] if self.transport else []
        transport = f"transport = {{ {', '.join(switches)} }}\n" if switches else ""
        path = _PATH.format(title=f"{control}: {self.name}", duration=f"{self.duration_s:g}", queue=self.queue)
        return path + self.path + _FLOW.format(stack=STACK, control=control) + self.flow + transport + self.changes


def _at(time: str, change: str) -> str:
    return f'\n[[at]]\ntime = "{time}"\nset = {{ {change} }}\n'


VECTORS = (
    Vector("start-up", "Slow start without a loss, and its end by delay if the control has one.", 1.2, _ENDLESS),
    Vector("overshoot", "Slow start until a queue of one BDP overflows, then the first recoveries.", 4, _SHALLOW),
    Vector(
        "one-loss",
        "Packet 600 with data is lost: one reduction, then growth in congestion avoidance.",
        4,
        path='forward.impair = [{ kind = "loss-list", data_packets = [600] }]\n',
        transport=_LIMITED,
    ),
    Vector(
        "rto",
        "The link is down from 1 s to 2.5 s: timeouts with back-off, then slow start.",
        4,
        transport=_LIMITED,
        changes=_at("1 s", '"link.path.up" = false') + _at("2.5 s", '"link.path.up" = true'),
    ),
    Vector(
        "spurious-rto",
        "Packets that leave between 1 s and 1.1 s arrive 600 ms later, in order: a timeout without a loss, which F-RTO "
        "or Eifel undoes.",
        4,
        transport=_LIMITED,
        changes=_at("1 s", '"link.path.forward.delay" = "620 ms"')
        + _at("1.1 s", '"link.path.forward.delay" = "20 ms"'),
    ),
    Vector(
        "reordering",
        "Packets that leave between 1 s and 1.01 s take 50 ms longer and are overtaken: no loss, so any reduction is "
        "undone.",
        3,
        path="forward.overtake = true\n",
        transport=_LIMITED,
        changes=_at("1 s", '"link.path.forward.delay" = "70 ms"')
        + _at("1.01 s", '"link.path.forward.delay" = "20 ms"'),
    ),
    Vector(
        "idle-restart",
        "Responses of 500 kB, each a second after the last: the window after an idle time (RFC 2861, RFC 7661).",
        5,
        flow='workload = { kind = "request-response", response = "500 kB", think = "1 s" }\n',
    ),
    Vector(
        "app-limited",
        "The application writes 3 Mbit/s: the window must not grow far beyond its use (RFC 7661).",
        3,
        flow='workload = { kind = "paced", rate = "3 Mbit/s" }\n',
    ),
    Vector(
        "ecn",
        "A queue marks packets while more than 20 wait: reductions by marks (RFC 3168, RFC 8257, RFC 9331).",
        4,
        '{ kind = "threshold-mark", threshold = "20 packets", limit = "200 packets" }',
        is_ecn=True,
    ),
    Vector(
        "rtt-change",
        "The propagation delay rises from 20 ms to 60 ms each way at 2 s: estimates of the smallest round-trip time.",
        6,
        transport=_LIMITED,
        changes=_at("2 s", '"link.path.delay" = "60 ms"'),
    ),
    Vector(
        "capacity-change",
        "The rate falls from 10 Mbit/s to 4 Mbit/s at 2 s and returns at 4 s.",
        6,
        _SHALLOW,
        changes=_at("2 s", '"link.path.rate" = "4 Mbit/s"') + _at("4 s", '"link.path.rate" = "10 Mbit/s"'),
    ),
)


def named(name: str) -> Vector | None:
    """The scenario of this name."""
    return next((vector for vector in VECTORS if vector.name == name), None)
