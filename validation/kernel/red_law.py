"""RED between "nothing" and "every packet": decisions that follow from the average alone, as Linux keeps it (measured).

The average is a whole number of bytes with a fraction of ``power`` bits; the step towards the queue is cut to that. It
does not fall while the queue is empty: HTB does not ask an empty queue for a packet, so that RED does not notice that
it is idle.
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
        power: The weight is 2 to the minus this.
        ecn: Whether packets are marked.
        hard_drop: Whether every packet above the maximum is dropped all the same.
    """

    maximum: int
    power: int
    limit: int
    ecn: bool = False
    hard_drop: bool = False

    def run(self, arrivals: Sequence[Arrival], bits_per_ns: float) -> tuple[dict[int, float], set[int]]:
        """When each packet leaves that leaves, and which are marked."""
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
