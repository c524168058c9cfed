"""Rows of the comparison of queues: a discipline of Linux, our queue, and the arrivals.

Targets and intervals are chosen so that every decision of the model is more than 3 µs from its
threshold: on the grid of departures a microsecond would decide, and departures in the guest are up
to 1.5 µs off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernel import cake_law
from kernel.arrivals import Arrival
from kernel.codel_law import Codel, FqCodel, Queue, Settings, newton, run
from kernel.red_law import Red

RATE = "12 Mbit/s"
BITS_PER_NS = 0.012
DEVICE = "tun0"
US = 1000
LINK = (
    f"qdisc add dev {DEVICE} root handle 1: htb default 1",
    f"class add dev {DEVICE} parent 1: classid 1:1 htb rate 12mbit ceil 12mbit burst 2b cburst 2b quantum 1500",
)
"""A link of 12 Mbit/s: HTB with a bucket of two bytes, which compensate late timers."""
BELOW = f"qdisc add dev {DEVICE} parent 1:1 handle 2: "

Outcome = tuple[dict[int, float], set[int]]
"""Departure of each forwarded packet, and the marked packets."""


Law = Settings | Red | cake_law.Settings


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        qdisc: The discipline, in the syntax of ``tc``.
        queue: Our queue, as in a scenario.
        shape: The arrivals.
        law: Parameters of the model of the discipline, if there is one.
        shapes: Whether the discipline is a shaper itself, without a link below.
        hosts: Source and destination of each flow; if empty, each flow has separate hosts.
        beside: The kind of our queue, if it is not that of the discipline.
    """

    qdisc: str
    queue: Mapping[str, Any]
    shape: str
    law: Law | None = None
    shapes: bool = False
    hosts: tuple[tuple[int, int], ...] = ()
    beside: str = ""

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.qdisc}{f' beside {self.beside}' if self.beside else ''} | {self.shape}"

    @property
    def cell(self) -> str:
        """The queue in the table."""
        return f"`{self.qdisc}`{f' beside `{self.beside}`' if self.beside else ''}"

    @property
    def tc(self) -> list[str]:
        """Commands that set the discipline up."""
        return [f"qdisc add dev {DEVICE} root {self.qdisc}"] if self.shapes else [*LINK, BELOW + self.qdisc]

    def modelled(self, arrivals: Sequence[Arrival], *, linux: bool) -> Outcome | None:
        """The model's decisions, with the arithmetic of Linux or by the text of the RFC; ``None`` without a model."""
        if isinstance(self.law, Red):
            return self.law.run(arrivals, BITS_PER_NS) if linux else None
        if self.law is None:
            return None
        queue = self.model(arrivals, linux=linux)
        rate = self.law.rate if isinstance(self.law, cake_law.Settings) else BITS_PER_NS
        left = run(queue, arrivals, rate, in_vain=not (linux or self.shapes))
        return left, queue.marked

    def model(self, arrivals: Sequence[Arrival], *, linux: bool) -> Queue:
        """The model of a discipline of the CoDel family, without packets."""
        law = self.law
        if isinstance(law, cake_law.Settings):
            return cake_law.Cake(replace(law, root=cake_law.tabled) if linux else law, arrivals)
        assert isinstance(law, Settings)  # noqa: S101 - the others have no queue
        if linux:
            law = replace(
                law, root=newton, unit=1024, overload_counts=True, whole_backlog=True, half_of_bytes=True
            )  # fmt: skip
        quantum = int(str(self.queue.get("quantum", "1500")).split()[0])
        return FqCodel(law, arrivals, quantum) if self.queue["kind"] == "fq-codel" else Codel(law, arrivals)


def _rows(qdisc: str, queue: Mapping[str, Any], shapes: str, law: Law | None = None) -> list[Row]:
    return [Row(qdisc, queue, shape, law) for shape in shapes.split()]


def _fifo() -> list[Row]:
    return [
        *_rows("pfifo limit 50", {"kind": "drop-tail", "limit": "50 packets"}, "overload bursts two-flows small gaps"),
        *_rows("bfifo limit 30000", {"kind": "drop-tail", "limit": "30000 bytes"}, "overload bursts two-flows small"),
    ]


def _codel() -> list[Row]:
    slow, fast = Settings(interval=99_530 * US), Settings(interval=40_630 * US, target=2070 * US)
    words: dict[str, Any] = {"kind": "codel", "interval": "99.53 ms"}
    quick: dict[str, Any] = {"kind": "codel", "target": "2.07 ms", "interval": "40.63 ms"}
    return [
        *_rows("codel interval 99.53ms", words, "overload bursts two-flows small gaps light", slow),
        *_rows("codel limit 100 target 2.07ms interval 40.63ms", quick | {"limit": "100 packets"},
               "overload bursts two-flows small gaps", replace(fast, limit=100)),
        *_rows("codel interval 99.53ms ecn", words | {"ecn": True}, "capable ecn", replace(slow, ecn=True)),
        *_rows("codel target 5.03ms interval 50.47ms ce_threshold 2.04ms",
               {"kind": "codel", "target": "5.03 ms", "interval": "50.47 ms", "ce_threshold": "2.04 ms"}, "ecn",
               Settings(interval=50_470 * US, target=5030 * US, ce_threshold=2040 * US)),
    ]  # fmt: skip


def _fq_codel() -> list[Row]:
    slow = Settings(interval=99_530 * US, limit=10_240, ecn=True)
    fast = Settings(interval=40_470 * US, target=2070 * US, limit=60)
    words: dict[str, Any] = {"kind": "fq-codel", "interval": "99.53 ms"}
    quick = {"kind": "fq-codel", "limit": "60 packets", "target": "2.07 ms", "interval": "40.47 ms", "ecn": False,
             "quantum": "300 bytes"}  # fmt: skip
    return [
        *_rows("fq_codel interval 99.53ms", words, "overload two-flows sparse ecn bursts gaps", slow),
        *_rows("fq_codel limit 60 target 2.07ms interval 40.47ms noecn quantum 300", quick,
               "overload two-flows sparse ecn bursts gaps", fast),
    ]  # fmt: skip


def _red() -> list[Row]:
    """RED with a nearly flat line between the thresholds, so that random drops do not occur."""
    words = "red limit 400000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 12mbit probability 0.0001"
    queue: dict[str, Any] = {
        "kind": "red", "limit": "400000 bytes", "min_threshold": "15000 bytes", "max_threshold": "45000 bytes",
        "max_probability": 0.0001, "weight": 0.0625, "scale_by_size": False, "idle_packet": "1500 bytes",
    }  # fmt: skip
    law = Red(maximum=45_000, power=4, limit=400_000)
    marking = replace(law, ecn=True)
    return [
        *_rows(words, queue, "overload two-flows small gaps", law),
        *_rows(f"{words} ecn", queue | {"ecn": True, "hard_drop": False}, "capable ecn", marking),
        *_rows(f"{words} ecn harddrop", queue | {"ecn": True}, "capable", replace(marking, hard_drop=True)),
    ]


def _cake() -> list[Row]:
    """CAKE with its own shaper. Several flows run at 6 Mbit/s, so that Linux's random rounding has no effect."""

    def rows(words: str, queue: Mapping[str, Any], shapes: str, law: cake_law.Settings | None) -> list[Row]:
        tin = {"kind": "cake", "diffserv": "besteffort", "isolation": "flows"}
        return [
            Row(f"cake {words}", {**tin, **queue}, shape, law, shapes=True) for shape in shapes.split()
        ]  # fmt: skip

    at_12 = cake_law.Settings(0.012, 99_530 * US)
    return [
        *rows("bandwidth 12mbit besteffort flows raw rtt 99.53ms", {"rate": RATE, "rtt": "99.53 ms"},
              "overload bursts gaps", at_12),
        *rows("bandwidth 12mbit besteffort flows raw rtt 40.31ms", {"rate": RATE, "rtt": "40.31 ms"},
              "overload gaps", replace(at_12, rtt=40_310 * US)),
        *rows("bandwidth 3mbit besteffort flows raw rtt 99.59ms", {"rate": "3 Mbit/s", "rtt": "99.59 ms"},
              "slow-slow-overload", cake_law.Settings(0.003, 99_590 * US)),
        *rows("bandwidth 6mbit besteffort flows raw rtt 99.53ms", {"rate": "6 Mbit/s", "rtt": "99.53 ms"},
              "slow-two-flows slow-sparse slow-ecn crowd", replace(at_12, rate=0.006)),
        *(
            row
            for words, queue in (
                ("overhead 38 mpu 84", {"overhead": 38, "mpu": 84}),
                ("overhead 44 atm", {"overhead": 44, "framing": "atm"}),
                ("overhead 22 ptm", {"overhead": 22, "framing": "ptm"}),
                ("overhead -20", {"overhead": -20}),
            )
            for row in rows(f"bandwidth 12mbit besteffort flows {words}", {"rate": RATE, **queue}, "sizes", None)
        ),
    ]  # fmt: skip


def _threshold() -> list[Row]:
    """Marking above a threshold, as for DCTCP: RED with equal thresholds, and marking by delay."""
    words = "red limit 400000 min 30000 max 30000 avpkt 1500 burst 20 bandwidth 12mbit probability 1 ecn"
    red: dict[str, Any] = {
        "kind": "red", "limit": "400000 bytes", "min_threshold": "30000 bytes", "max_threshold": "30001 bytes",
        "max_probability": 1.0, "weight": 0.5, "scale_by_size": False, "idle_packet": "1500 bytes", "ecn": True,
        "hard_drop": False,
    }  # fmt: skip
    threshold = {"kind": "threshold-mark", "limit": "400000 bytes", "threshold": "30000 bytes"}
    delay: dict[str, Any] = {"kind": "fq-codel", "ce_threshold": "2.04 ms", "interval": "99.53 ms"}
    law = Red(maximum=30_000, power=1, limit=400_000, ecn=True)
    marking = Settings(interval=99_530 * US, limit=10_240, ecn=True, ce_threshold=2040 * US)
    return [
        *_rows(words, red, "capable dctcp", law),
        *(replace(row, beside="threshold-mark") for row in _rows(words, threshold, "capable dctcp", law)),
        *_rows("fq_codel interval 99.53ms ce_threshold 2.04ms", delay, "capable dctcp", marking),
    ]


ROWS = (*_fifo(), *_codel(), *_fq_codel(), *_red(), *_threshold(), *_cake())

PIE: dict[str, Any] = {"kind": "pie", "derandomize": True, "update_interval": "20 ms"}
"""With Linux's spacing of drops, and its update interval at 250 Hz."""

CHANCE = (
    Row(
        "red limit 400000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 12mbit probability 0.1",
        {"kind": "red", "limit": "400000 bytes", "min_threshold": "15000 bytes", "max_threshold": "45000 bytes",
         "max_probability": 0.1, "weight": 0.0625, "scale_by_size": False, "idle_packet": "1500 bytes"},
        "steady",
    ),
    Row("pie", PIE, "steady"),
    Row("pie dq_rate_estimator", PIE | {"delay": "rate"}, "steady"),
    Row(
        "cake bandwidth 12mbit besteffort flows raw memlimit 101376",
        {"kind": "cake", "rate": RATE, "diffserv": "besteffort", "isolation": "flows", "limit": "44 packets"},
        "flood",
        shapes=True,
    ),
)  # fmt: skip
"""Disciplines with random decisions. A packet of 1,500 bytes counts as 2,304 bytes of memory in CAKE."""
