"""Bounds from the literature for the shares of two congestion controls at one bottleneck.

The bounds were written down before the first run. A share is the goodput of all flows of the first
control divided by that of all flows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

RATE = 100e6
BASE_RTT = 0.04
PACKET = 1500 * 8
TOLERANCE = 0.15
"""Largest distance of a share from the value in a source; the page of two flows against the kernel has the same."""

GROWING = ("reno", "cubic", "cubic-plus", "bic", "westwood-plus", "compound")
"""Controls that fill the queue until it drops."""


@dataclass(frozen=True, order=True)
class Setting:
    """A queue in bandwidth-delay products, and the number of flows of each control."""

    queue: int
    flows: int

    def __str__(self) -> str:
        """Name it in a line."""
        return f"{self.queue} BDP, {self.flows} + {self.flows} flows"


SETTINGS = tuple(Setting(queue, flows) for queue in (1, 4) for flows in (1, 5))

Shares = Mapping[tuple[str, str, Setting], float]
"""Share of the first control against the second."""


@dataclass(frozen=True)
class Check:
    """A share and its accepted range."""

    cell: str
    share: float
    low: float
    high: float

    @property
    def held(self) -> bool:
        """Whether the share is in the range."""
        return self.low <= self.share <= self.high


@dataclass(frozen=True)
class Expectation:
    """An expectation from a source.

    Attributes:
        name: Its name in tests and exceptions.
        condition: The condition that must hold.
        source: The publication.
        checks: Every share that it bounds.
    """

    name: str
    condition: str
    source: str
    checks: Callable[[Shares], Iterator[Check]]


def _bounded(
    first: str, others: Sequence[str], low: float, high: float, settings: Sequence[Setting] = SETTINGS
) -> Callable[[Shares], Iterator[Check]]:
    def checks(shares: Shares) -> Iterator[Check]:
        for other in others:
            for setting in settings:
                yield _check(shares, first, other, setting, low, high)

    return checks


def _check(shares: Shares, first: str, second: str, setting: Setting, low: float, high: float) -> Check:
    return Check(f"{first} beside {second}, {setting}", shares[first, second, setting], low, high)


def _itself(shares: Shares) -> Iterator[Check]:
    for first, second, setting in shares:
        if first == second:
            yield _check(shares, first, second, setting, 0.5 - TOLERANCE, 0.5 + TOLERANCE)


def bbr_share(setting: Setting) -> float:
    """Return BBR's share with its in-flight cap against controls that fill the queue.

    If all ``X`` bandwidth-delay products are in use, BBR has the share 1 - p of the packets in
    flight. Its minimum round-trip time is measured while its own flows have four packets each, and
    the cap is twice the rate times that: 1 - p meets it at p = 1/2 - 1/(2X) - 4N/q. Every ten
    seconds ProbeRTT reduces the window for 0.2 s and a round trip.
    """
    packets = setting.queue * RATE * BASE_RTT / PACKET
    others = max(0.0, 0.5 - 0.5 / setting.queue - 4 * setting.flows / packets)
    standing_back = setting.queue * BASE_RTT + 0.2 + BASE_RTT
    return (1 - others) * (1 - standing_back / 10)


def _bbr(shares: Shares) -> Iterator[Check]:
    for other in ("reno", "cubic"):
        for setting in SETTINGS:
            share = bbr_share(setting)
            yield _check(shares, "bbr", other, setting, share - TOLERANCE, share + TOLERANCE)


def _bbr3(shares: Shares) -> Iterator[Check]:
    for other in ("reno", "cubic"):
        for setting in SETTINGS:
            if setting.queue == 1:
                most = math.nextafter(shares["bbr", other, setting], 0)
                yield _check(shares, "bbr3", other, setting, 0, most)


def cubic_is_faster(setting: Setting) -> bool:
    """Whether Reno needs longer than CUBIC to regain its window before a loss, if all flows are equal.

    Reno: half the window at a segment per round trip. CUBIC: K of RFC 9438 §4.2 with its β = 0.7
    and C = 0.4.
    """
    window = (1 + setting.queue) * RATE * BASE_RTT / PACKET / (2 * setting.flows)
    reno = window / 2 * (1 + setting.queue) * BASE_RTT
    return reno > math.pow(window * 0.3 / 0.4, 1 / 3)


def _cubic(shares: Shares) -> Iterator[Check]:
    for setting in SETTINGS:
        low, high = (0.5, 1.0) if cubic_is_faster(setting) else (0.5 - TOLERANCE, 0.5 + TOLERANCE)
        yield _check(shares, "cubic", "reno", setting, low, high)


def _westwood(shares: Shares) -> Iterator[Check]:
    for setting in SETTINGS:
        low, high = (0.0, 0.5) if setting.queue > 1 else (0.5 - TOLERANCE, 0.5 + TOLERANCE)
        yield _check(shares, "westwood-plus", "reno", setting, low, high)


SHALLOW = tuple(setting for setting in SETTINGS if setting.queue == 1)

EXPECTATIONS = (
    Expectation(
        "itself",
        f"a control beside itself: half, ± {TOLERANCE:g}",
        "the two groups are interchangeable",
        _itself,
    ),
    Expectation(
        "vegas",
        "Vegas beside a control that fills the queue: at most a quarter",
        "Mo, La, Anantharam and Walrand, INFOCOM 1999: Vegas keeps 2 to 4 packets in a queue that the others fill",
        _bounded("vegas", GROWING, 0, 0.25),
    ),
    Expectation(
        "bbr-shallow",
        "BBR beside a control that fills the queue, 1 BDP: more than half",
        "Hock, Bless and Zitterbart, ICNP 2017: BBR does not slow down for the losses it causes",
        _bounded("bbr", GROWING, 0.5, 1, SHALLOW),
    ),
    Expectation(
        "bbr-cap",
        f"BBR beside Reno and CUBIC: what its in-flight cap leaves, ± {TOLERANCE:g}",
        "Ware et al., IMC 2019, equations of the share: p = 1/2 - 1/(2X) - 4N/q",
        _bbr,
    ),
    Expectation(
        "bbr3",
        "BBRv3 beside Reno and CUBIC, 1 BDP: less than BBR takes",
        "draft-ietf-ccwg-bbr-06 §2.8, §5.3.3.8: probes seldom enough for Reno and CUBIC, and slows down for losses",
        _bbr3,
    ),
    Expectation(
        "cubic",
        f"CUBIC beside Reno: more than half where it is back sooner after a loss, else half ± {TOLERANCE:g}",
        "RFC 9438 §4.2, §4.3: in the Reno-friendly region the average is Reno's, outside of it more",
        _cubic,
    ),
    Expectation(
        "bic",
        "BIC beside Reno and CUBIC: at least half",
        "Ha, Rhee and Xu, ACM SIGOPS OSR 42-5 (2008): CUBIC was made because BIC takes too much on short paths",
        _bounded("bic", ("reno", "cubic"), 0.5, 1),
    ),
    Expectation(
        "westwood",
        f"Westwood+ beside Reno: half ± {TOLERANCE:g} with 1 BDP, where both halve; less with 4 BDP",
        "Grieco and Mascolo, ACM CCR 34-2 (2004) §2: it reduces to what the pipe holds, and gives up all of the queue",
        _westwood,
    ),
    Expectation(
        "compound",
        f"Compound beside Reno: half ± {TOLERANCE:g}",
        "Tan, Song, Zhang and Sridharan, INFOCOM 2006: never below Reno, and no more than Reno once a queue stands",
        _bounded("compound", ("reno",), 0.5 - TOLERANCE, 0.5 + TOLERANCE),
    ),
)
