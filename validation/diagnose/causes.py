"""The causes that ``planted.py`` plants, each with a random scenario and the findings that name it.

A scenario has one fault; its parameters are drawn from a seed. The path has four links, so that one
run is captured near the sender, in the middle and near the receiver. Faults that the engine cannot
plant are in ``wire.py``, with the kernel's TCP at both ends.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch import Scenario

from diagnose import editing

POINTS = {"sender": "access", "middle": "far", "receiver": "last"}
"""Capture points: the link at whose entrance each capture is made."""

TEXT = """
duration = "{duration:g} s"
[link.access]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "100 us"
[link.near]
between = ["M", "N"]
rate = "{rate:.3f} Mbit/s"
delay = "{near:.3f} ms"
queue = {{ kind = "drop-tail", limit = "{limit}" }}
{near_keys}
[link.far]
between = ["N", "O"]
rate = "1 Gbit/s"
delay = "{far:.3f} ms"
{far_keys}
[link.last]
between = ["O", "B"]
rate = "1 Gbit/s"
delay = "100 us"
{host}
[flow.main]
from = "A"
to = "B"
{flow}
{at}
"""

Edit = Callable[[bytes, random.Random], bytes]
Text = Callable[[random.Random], str]


@dataclass(frozen=True)
class Cause:
    """A cause that can be planted."""

    name: str
    text: Text
    """A scenario."""
    named_by: frozenset[str]
    """Findings of which the diagnosis must have one."""
    besides: frozenset[str] = frozenset()
    """Other findings that are true in such a run, because the planted cause entails them."""
    stalls: frozenset[str] = frozenset()
    """Possible causes of a pause that ends without a retransmission."""
    edit: Edit | None = None
    """Edits the capture of each point."""
    hidden: frozenset[str] = frozenset()
    """Findings that a capture downstream of the fault cannot have, because it lacks the packets."""
    changes: frozenset[str] = frozenset()
    """Changes of headers between the sender and the receiver, as two captures show them."""


@dataclass
class Path:
    """A path of a scenario, with values drawn at random."""

    rate: float
    near: float
    far: float
    limit: str = "1 bdp"
    duration: float = 12.0
    near_keys: str = ""
    far_keys: str = ""
    host: str = ""
    flow: str = ""
    at: str = ""
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def rtt_ms(self) -> float:
        """The round trip without queues."""
        return 2 * (self.near + self.far + 0.2)

    @property
    def bdp(self) -> float:
        """Bytes that fill the path."""
        return self.rate * self.rtt_ms * 125

    def text(self) -> str:
        """The scenario."""
        values = {name: value for name, value in vars(self).items() if name != "extra"}
        return TEXT.format(**values)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """A number with a uniformly distributed logarithm."""
    return float(low * (high / low) ** rng.random())


def draw(rng: random.Random, rate: tuple[float, float] = (8, 60), delay: tuple[float, float] = (3, 25)) -> Path:
    """A path."""
    return Path(log_uniform(rng, *rate), log_uniform(rng, *delay), log_uniform(rng, *delay))


def impair(path: Path, rng: random.Random, what: str) -> Path:
    """Put an impairment of data on one of the two long links."""
    keys = f"forward.impair = [{what}]"
    if rng.random() < 0.5:
        path.near_keys = keys
    else:
        path.far_keys = keys
    return path


def random_loss(rng: random.Random) -> str:
    """Loss of single packets."""
    path = draw(rng)
    rate = log_uniform(rng, 0.002, 0.02)
    return impair(path, rng, f'{{ kind = "bernoulli-loss", rate = {rate:.5f} }}').text()


def burst_loss(rng: random.Random) -> str:
    """Loss of several packets in a row."""
    path = draw(rng)
    rate, burst = log_uniform(rng, 0.004, 0.02), rng.uniform(3, 8)
    what = f'{{ kind = "gilbert-elliott", loss_rate = {rate:.5f}, mean_burst = {burst:.2f} }}'
    return impair(path, rng, what).text()


def reordering(rng: random.Random) -> str:
    """Packets that later packets overtake."""
    path = draw(rng)
    every = rng.randint(20, 80)
    numbers = ", ".join(str(number) for number in range(every, 60_000, every))
    mean = log_uniform(rng, 1, path.rtt_ms / 3)
    what = (
        f'{{ kind = "jitter", distribution = "exponential", mean = "{mean:.3f} ms", reorder = true, '
        f"packets = [{numbers}] }}"
    )
    return impair(path, rng, what).text()


def tail_loss(rng: random.Random) -> str:
    """The last packets of responses are lost. They are found by running, losing one more, and running again."""
    path = draw(rng)
    path.duration = 6
    size, think = rng.randint(8, 40) * 1448, rng.uniform(60, 200)
    path.flow = (
        f'workload = {{ kind = "request-response", request = "300 bytes", response = "{size} bytes", '
        f'think = "{think:.1f} ms" }}'
    )
    lost: list[int] = []
    wanted = rng.randint(3, 6)
    response = 0
    while len(lost) < wanted:
        content = (
            Scenario.from_text(path.text(), file="tail-loss.toml").run(captures=["far.forward"]).pcapng("far.forward")
        )
        response += rng.randint(2, 4)
        last = editing.tail(content, response * size, rng.randint(1, 2))
        if not last:
            break
        lost = sorted({*lost, *last})
        path.far_keys = f'forward.impair = [{{ kind = "loss-list", packets = {json.dumps(lost)} }}]'
    return path.text()


def syn_loss(rng: random.Random) -> str:
    """The first SYN, or its SYN-ACK, is lost, possibly several times."""
    path = draw(rng)
    path.duration = 8
    path.flow = f'workload = {{ kind = "file", size = "{rng.randint(50, 500)} kB" }}'
    way = rng.choice(["forward", "reverse"])
    lost = list(range(rng.randint(1, 2)))
    path.far_keys = f'{way}.impair = [{{ kind = "loss-list", packets = {lost} }}]'
    return path.text()


def receive_window(rng: random.Random) -> str:
    """A receive buffer that is smaller than the bandwidth-delay product."""
    path = draw(rng, rate=(50, 200), delay=(10, 30))
    window = path.bdp * rng.uniform(0.1, 0.5)
    path.flow = f'transport = {{ receive_window = "{window:.0f} bytes", receive_autotuning = false }}'
    return path.text()


def zero_window(rng: random.Random) -> str:
    """An application that pauses before each read."""
    path = draw(rng)
    path.limit = "20 bdp"
    path.host = f'[host.B]\nread_delays = ["{rng.uniform(400, 2500):.0f} ms"]'
    path.flow = f'transport = {{ receive_window = "{rng.randint(32, 128)} KiB", receive_autotuning = false }}'
    return path.text()


def slow_reader(rng: random.Random) -> str:
    """An application that reads more slowly than data arrives."""
    path = draw(rng, rate=(40, 100), delay=(3, 10))
    window = rng.randint(32, 96)
    path.limit = "20 bdp"
    path.host = f'[host.B]\nread_delays = ["{rng.uniform(2, 6) * path.rtt_ms:.1f} ms"]'
    path.flow = f'transport = {{ receive_window = "{window} KiB", receive_autotuning = false }}'
    return path.text()


def slow_application(rng: random.Random) -> str:
    """A sender whose application writes less than the path could carry."""
    path = draw(rng)
    rate = path.rate * rng.uniform(0.02, 0.3)
    path.flow = (
        f'workload = {{ kind = "paced", rate = "{rate:.3f} Mbit/s", payload = "{rng.randint(200, 20000)} bytes" }}'
    )
    return path.text()


def slow_client(rng: random.Random) -> str:
    """A client that waits before its next request."""
    path = draw(rng)
    size = rng.randint(2, 60) * 1000
    think = log_uniform(rng, 200, 1500)
    path.flow = (
        f'workload = {{ kind = "request-response", request = "{rng.randint(50, 600)} bytes", '
        f'response = "{size} bytes", '
        f'think = "{think:.1f} ms" }}'
    )
    return path.text()


def round_trips(rng: random.Random) -> str:
    """Applications that take turns and answer at once."""
    path = draw(rng, delay=(10, 60))
    path.duration = 6
    path.flow = (
        f'workload = {{ kind = "request-response", request = "{rng.randint(50, 600)} bytes", '
        f'response = "{rng.randint(100, 6000)} bytes" }}'
    )
    return path.text()


def send_buffer(rng: random.Random) -> str:
    """A send buffer that is smaller than the bandwidth-delay product."""
    path = draw(rng, rate=(100, 500), delay=(10, 30))
    size = path.bdp * rng.uniform(0.05, 0.3)
    path.flow = f'transport = {{ send_buffer = "{size:.0f} bytes" }}'
    return path.text()


def lost_acknowledgments(rng: random.Random) -> str:
    """A reverse path with heavy loss, while a bulk sender always has data."""
    path = draw(rng)
    keys = f'reverse.impair = [{{ kind = "bernoulli-loss", rate = {rng.uniform(0.1, 0.9):.3f} }}]'
    if rng.random() < 0.5:
        path.near_keys = keys
    else:
        path.far_keys = keys
    return path.text()


def late_acknowledgments(rng: random.Random) -> str:
    """A reverse path with varying delay."""
    path = draw(rng)
    mean = log_uniform(rng, 0.5, path.rtt_ms / 4)
    path.far_keys = f'reverse.impair = [{{ kind = "jitter", distribution = "exponential", mean = "{mean:.3f} ms" }}]'
    return path.text()


def bufferbloat(rng: random.Random) -> str:
    """A queue of many bandwidth-delay products."""
    path = draw(rng, rate=(4, 20), delay=(5, 20))
    path.limit = f"{rng.uniform(5, 12):.2f} bdp"
    return path.text()


def delayed_ack(rng: random.Random) -> str:
    """Writes of full segments and a part, each with a delayed acknowledgment: Nagle's algorithm waits for it.

    With segmentation offload the profile has Linux's variant (Minshall), which waits for short segments only.
    """
    path = draw(rng, delay=(1, 8))
    # An odd number of full segments leaves one whose acknowledgment is delayed (RFC 5681 §4.2). A pause as long as the
    # retransmission timeout would put the receiver into quickack mode.
    size = rng.choice([1, 3]) * 1448 + rng.randint(50, 900)
    path.flow = (
        'transport = { nagle = true, segmentation = "none" }\n'
        f'workload = {{ kind = "paced", rate = "{size * 8 / rng.uniform(80, 150):.3f} kbit/s", '
        f'payload = "{size} bytes" }}'
    )
    return path.text()


def clean(rng: random.Random) -> str:
    """A path without a fault; the window fills it."""
    return draw(rng).text()


def route_change(rng: random.Random) -> str:
    """A route change to a longer or shorter route."""
    path = draw(rng, delay=(8, 25))
    path.duration = 14
    path.flow = f'transport = {{ receive_window = "{path.bdp * 0.4:.0f} bytes", receive_autotuning = false }}'
    other = path.far * (rng.uniform(1.8, 3.5) if rng.random() < 0.5 else rng.uniform(0.1, 0.4))
    path.at = f'[[at]]\ntime = "{rng.uniform(4, 9):.3f} s"\nset = {{ "link.far.delay" = "{other:.3f} ms" }}'
    return path.text()


def policer(rng: random.Random) -> str:
    """A token bucket of 20 to 160 ms that drops packets above a rate far below the path's, as measured on the wire."""
    path = draw(rng, rate=(20, 60))
    rate = path.rate * rng.uniform(0.1, 0.4)
    burst = rate * 125 * rng.uniform(20, 160)
    return impair(path, rng, f'{{ kind = "policer", rate = "{rate:.3f} Mbit/s", burst = "{burst:.0f} bytes" }}').text()


def black_hole(rng: random.Random) -> str:
    """A link with a smaller MTU than the sender assumes, whose router does not report it (RFC 2923 §2.1)."""
    path = draw(rng)
    path.far_keys = f'mtu = "{rng.randint(1000, 1400)} bytes"\nmtu_reports = false'
    return path.text()


def cause(
    name: str,
    text: Text,
    named_by: set[str],
    besides: set[str] | None = None,
    stalls: set[str] | None = None,
    edit: Edit | None = None,
    hidden: set[str] | None = None,
    changes: set[str] | None = None,
) -> Cause:
    """A cause; sets as frozen ones."""
    named, others, waits = frozenset(named_by), frozenset(besides or ()), frozenset(stalls or ())
    return Cause(name, text, named, others, waits, edit, frozenset(hidden or ()), frozenset(changes or ()))


WINDOW = {"congestion-window", "bottleneck", "fast-recovery"}
"""Limits of a bulk flow between acknowledgments, on a path with losses."""
SYNS = {"syn-loss", "unanswered"}
"""A loss of packets may hit the first SYN, or all packets that open the connection."""
LOST = {"random-loss", "burst-loss", "tail-loss", "syn-loss", "queue-overflow"}
"""Kinds of loss. A queue overflow loses packets in bursts, and random losses may hit tails, SYNs
and neighbouring packets."""

CAUSES = (
    cause("random loss", random_loss, {"random-loss"}, SYNS | {"tail-loss", "queue-overflow"}, WINDOW),
    cause("burst loss", burst_loss, {"burst-loss"}, SYNS | {"tail-loss", "random-loss", "queue-overflow"}, WINDOW),
    cause("reordering", reordering, {"reordering"}, {"queue-overflow"}, WINDOW | {"reordering"}),
    cause("tail loss", tail_loss, {"tail-loss"}, {"slow-client", "round-trips", "queue-overflow"},
          {"application", "round-trips"}),
    cause("SYN loss", syn_loss, {"syn-loss"}, {"queue-overflow"}, WINDOW | {"handshake"}, hidden={"syn-loss"}),
    cause("small receive window", receive_window, {"receive-window"}, stalls={"receive-window"}),
    cause("zero window", zero_window, {"zero-window"}, {"slow-reader"}, {"zero-window", "receive-window"}),
    cause("slow reader", slow_reader, {"slow-reader", "zero-window"}, set(), {"receive-window", "zero-window"}),
    # Nagle's algorithm holds a small write back while an earlier one is not acknowledged.
    cause("slow application", slow_application, {"application"}, {"delayed-ack-nagle"}, {"application"}),
    cause("slow client", slow_client, {"slow-client"}, {"round-trips"}, {"application", "round-trips"}),
    cause("round trips", round_trips, {"round-trips"}, stalls={"round-trips"}),
    cause("small send buffer", send_buffer, {"send-buffer"}, stalls={"send-buffer"}),
    # SYN-ACKs and SACKs are lost too. The sender's loss marking and the queue are the same as
    # without this loss.
    cause("lost acknowledgments", lost_acknowledgments, set(),
          {"queue-overflow", "syn-loss", "tail-loss", "silent-peer", "receive-window"}, WINDOW | {"receive-window"}),
    cause("late acknowledgments", late_acknowledgments, set(), {"queue-overflow"}, WINDOW),
    cause("bufferbloat", bufferbloat, {"bufferbloat"}, {"queue-overflow"}, WINDOW),
    cause("delayed ACK with Nagle", delayed_ack, {"delayed-ack-nagle"}, {"application", "slow-client", "round-trips"},
    {"delayed-ack-nagle", "application"}),
    cause("capture drops", clean, {"capture-gap"}, {"queue-overflow"}, WINDOW | {"capture-gap"}, editing.drop),
    cause("route change", route_change, {"route-change"}, {"receive-window", "queue-overflow", "reordering"},
    {"receive-window"}),
    cause(
        "RST by a middlebox", clean, {"reset-by-middlebox"}, {"queue-overflow"}, WINDOW, editing.reset,
        changes={"rst-added"},
    ),
    cause("policer", policer, {"policer"}, LOST, WINDOW | {"pacing"}),
    # No acknowledgment arrives, so that a timer releases every segment: a probe may be new data
    # (RFC 8985 §7.3).
    cause("MTU black hole", black_hole, {"large-segments-lost"}, {"tail-loss"}, WINDOW | {"retransmission-timeout"},
          hidden={"large-segments-lost"}),
    cause("none", clean, set(), {"queue-overflow"}, WINDOW),
)  # fmt: skip

LIVE = (
    cause("thinned acknowledgments", clean, set(), {"queue-overflow"}, WINDOW),
    cause("pacing", clean, set(), stalls={"pacing"}),
    cause("MSS clamp", clean, set(), {"queue-overflow"}, WINDOW, changes={"mss"}),
    cause("SACK removed", clean, set(), {"queue-overflow", "tail-loss"}, WINDOW, changes={"option-removed"}),
    cause("timestamps removed", clean, set(), {"queue-overflow"}, WINDOW, changes={"option-removed"}),
    cause("window scale removed", clean, {"receive-window"}, {"queue-overflow"}, {"receive-window"},
          changes={"option-removed"}),
    cause("SACK not translated", clean, {"sequence-randomiser"}, {"queue-overflow", "tail-loss", "random-loss"},
          WINDOW | {"retransmission-timeout"}, changes={"sequence-numbers", "sack"}),
    cause("ECN cleared", clean, {"ecn-cleared"}, {"queue-overflow"}, WINDOW, changes={"ecn-cleared"}),
    cause("CE cleared", clean, set(), {"queue-overflow"}, WINDOW, changes={"ce-cleared"}),
    cause("NAT", clean, set(), {"queue-overflow"}, WINDOW, changes={"address"}),
    cause("window scale ignored", clean, {"window-scaling-ignored"}, {"tail-loss", "silent-peer"},
          WINDOW | {"retransmission-timeout"}),
    cause("connection forgotten", clean, {"silent-peer"}, {"queue-overflow", "tail-loss"},
          WINDOW | {"retransmission-timeout"}),
)  # fmt: skip
"""Causes that only the wire of ``wire.py`` can plant."""
