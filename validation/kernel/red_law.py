"""RED without random decisions: the average alone decides, in Linux's arithmetic (measured).

The average is a whole number of bytes with a fraction of ``power`` bits; the step towards the queue
is truncated to that. It does not fall while the queue is empty: HTB does not dequeue from an empty
queue, so that RED does not notice its idle time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kernel.arrivals import CE, NOT_ECT, Arrival


@dataclass(frozen=True)
class Red:
    """Parameters, in bytes.

    Attributes:
        power: The weight is 2 to the power of minus this.
        ecn: Whether packets are marked.
        hard_drop: Whether every packet above the maximum is dropped even with ECN.
    """

    maximum: int
    power: int
    limit: int
    ecn: bool = False
    hard_drop: bool = False

    def run(self, arrivals: Sequence[Arrival], bits_per_ns: float) -> tuple[dict[int, float], set[int]]:
        """Departure of each forwarded packet, and the marked packets."""
        left: dict[int, float] = {}
        marked: set[int] = set()
        waiting: deque[int] = deque()
        average = backlog = 0
        free = 0.0
        for number, arrival in enumerate(arrivals):
            while waiting and free < arrival.at_ns:
                first = waiting.popleft()
                backlog -= arrivals[first].size
                left[first], free = free, free + arrivals[first].size * 8 / bits_per_ns
            average += backlog - (average >> self.power)
            if average >> self.power >= self.maximum:
                if not self.ecn or self.hard_drop or arrival.ecn == NOT_ECT:
                    continue
                if arrival.ecn != CE:
                    marked.add(number)
            if backlog + arrival.size > self.limit:
                marked.discard(number)
                continue
            if free <= arrival.at_ns and not waiting:
                left[number], free = arrival.at_ns, arrival.at_ns + arrival.size * 8 / bits_per_ns
            else:
                waiting.append(number)
                backlog += arrival.size
        while waiting:
            first = waiting.popleft()
            left[first], free = free, free + arrivals[first].size * 8 / bits_per_ns
        return left, marked
