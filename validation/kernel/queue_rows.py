"""Rows of the comparison of queues: a discipline of Linux, the queue of ours, and the arrivals.

Targets and intervals are a little off whole milliseconds: on the grid of departures a microsecond would decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernel.arrivals import Arrival
from kernel.codel_law import Codel, FqCodel, Settings, newton, run
from kernel.red_law import Red

RATE = "12 Mbit/s"
BITS_PER_NS = 0.012
DEVICE = "tun0"
US = 1000
LINK = (
    f"qdisc add dev {DEVICE} root handle 1: htb default 1",
    f"class add dev {DEVICE} parent 1: classid 1:1 htb rate 12mbit ceil 12mbit burst 2b cburst 2b quantum 1500",
)
"""A link of 12 Mbit/s: HTB with a bucket of two bytes, which make up for late timers."""
BELOW = f"qdisc add dev {DEVICE} parent 1:1 handle 2: "

Outcome = tuple[dict[int, float], set[int]]
"""When each packet leaves that leaves, and which are marked."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        qdisc: The discipline, as ``tc`` reads it.
        queue: Ours, as a scenario has it.
        shape: The arrivals.
        law: Parameters of the model of the discipline, if there is one.
        shapes: Whether the discipline is its own shaper, without a link below.
        hosts: Source and destination of each flow; its own ones if empty.
    """

    qdisc: str
    queue: Mapping[str, Any]
    shape: str
    law: Settings | Red | None = None
    shapes: bool = False
    hosts: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.qdisc} | {self.shape}"

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
        law = self.law
        if linux:
            law = replace(
                law, root=newton, unit=1024, overload_counts=True, whole_backlog=True, half_of_bytes=True
            )  # fmt: skip
        quantum = int(str(self.queue.get("quantum", "1500")).split()[0])
        queue = FqCodel(law, arrivals, quantum) if self.queue["kind"] == "fq-codel" else Codel(law, arrivals)
        return run(queue, arrivals, BITS_PER_NS), queue.marked


def _rows(qdisc: str, queue: Mapping[str, Any], shapes: str, law: Settings | Red | None = None) -> list[Row]:
    return [Row(qdisc, queue, shape, law) for shape in shapes.split()]


def _fifo() -> list[Row]:
    return [
        *_rows("pfifo limit 50", {"kind": "drop-tail", "limit": "50 packets"}, "overload bursts two-flows small gaps"),
        *_rows("bfifo limit 30000", {"kind": "drop-tail", "limit": "30000 bytes"}, "overload bursts two-flows small"),
    ]


def _codel() -> list[Row]:
    slow, fast = Settings(interval=99_530 * US), Settings(interval=20_530 * US, target=1030 * US)
    words: dict[str, Any] = {"kind": "codel", "interval": "99.53 ms"}
    quick: dict[str, Any] = {"kind": "codel", "target": "1.03 ms", "interval": "20.53 ms"}
    return [
        *_rows("codel interval 99.53ms", words, "overload bursts two-flows small gaps light", slow),
        *_rows("codel limit 100 target 1.03ms interval 20.53ms", quick | {"limit": "100 packets"},
               "overload bursts two-flows small gaps", replace(fast, limit=100)),
        *_rows("codel interval 99.53ms ecn", words | {"ecn": True}, "capable ecn", replace(slow, ecn=True)),
        *_rows("codel target 5.03ms interval 50.47ms ce_threshold 2.04ms",
               {"kind": "codel", "target": "5.03 ms", "interval": "50.47 ms", "ce_threshold": "2.04 ms"}, "ecn",
               Settings(interval=50_470 * US, target=5030 * US, ce_threshold=2040 * US)),
    ]  # fmt: skip


def _fq_codel() -> list[Row]:
    slow = Settings(interval=99_530 * US, limit=10_240, ecn=True)
    fast = Settings(interval=20_530 * US, target=1030 * US, limit=60)
    words: dict[str, Any] = {"kind": "fq-codel", "interval": "99.53 ms"}
    quick = {"kind": "fq-codel", "limit": "60 packets", "target": "1.03 ms", "interval": "20.53 ms", "ecn": False,
             "quantum": "300 bytes"}  # fmt: skip
    return [
        *_rows("fq_codel interval 99.53ms", words, "overload two-flows sparse ecn bursts gaps", slow),
        *_rows("fq_codel limit 60 target 1.03ms interval 20.53ms noecn quantum 300", quick,
               "overload two-flows sparse ecn bursts gaps", fast),
    ]  # fmt: skip


def _red() -> list[Row]:
    """RED whose line between the thresholds is so flat that chance decides nothing."""
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
    queue = {"kind": "cake", "rate": RATE, "diffserv": "besteffort", "isolation": "flows", "rtt": "99.53 ms"}
    words = "cake bandwidth 12mbit besteffort flows raw rtt 99.53ms"
    shapes = ("overload", "two-flows", "sparse", "ecn", "bursts", "gaps")
    return [Row(words, queue, shape, shapes=True) for shape in shapes]


ROWS = (*_fifo(), *_codel(), *_fq_codel(), *_red(), *_cake())

CHANCE = (
    Row(
        "red limit 400000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 12mbit probability 0.1",
        {"kind": "red", "limit": "400000 bytes", "min_threshold": "15000 bytes", "max_threshold": "45000 bytes",
         "max_probability": 0.1, "weight": 0.0625, "scale_by_size": False, "idle_packet": "1500 bytes"},
        "steady",
    ),
    Row("pie", {"kind": "pie"}, "steady"),
    Row("pie tupdate 15ms", {"kind": "pie", "update_interval": "30 ms"}, "steady"),
)  # fmt: skip
"""Disciplines that draw. The last has the update interval that Linux has at 100 Hz."""
