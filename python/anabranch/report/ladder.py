"""The packet ladder: packets at sender and receiver around a retransmission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from anabranch.charts.sequence import receiver

if TYPE_CHECKING:
    from anabranch.result.table import Table

_PRECISION = 1e-9
"""Precision of the time of a retransmission (s)."""
MOST_LADDERS = 400
"""Retransmissions that have a ladder."""
_BEFORE_ORIGINAL = 1
_AFTER_ORIGINAL = 4
_BEFORE = 7
_AFTER = 2
"""Packets around the original and around the retransmission; the packets in between are only counted."""

LADDER = (
    "<details class='ladder'><summary id='ladder-title'>Packets around this retransmission</summary>"
    "<p class='soft' id='ladder-told'></p>"
    "<div class='ladder-tools'><button type='button' data-step='-1'>Previous retransmission</button>"
    "<button type='button' data-step='1'>Next retransmission</button>"
    "<button type='button' data-step='0'>Zoom the charts to it</button></div>"
    "<div id='ladder' role='group' aria-labelledby='ladder-title'></div></details>"
)
"""The container of the ladder."""


class Ladders(TypedDict):
    """The packets of all ladders, once each, and the packets of each ladder.

    Attributes:
        rows: Sent (s), arrived (s or null), first octet, octets, whether it is a retransmission, where it was lost
            (null if it was not), the next octet expected after it arrived (null if unknown), whether it was held.
        ladders: The rows of each; a negative number is a number of omitted packets.
        ladders_of: The number of retransmissions.
    """

    rows: list[list[Any]]
    ladders: list[list[int]]
    ladders_of: int


def ladder_data(own: Table, chosen: Sequence[tuple[float, int]]) -> Ladders:
    """The packet ladders of retransmissions, each given by its time and first octet, of a flow with these packets."""
    import numpy as np

    sent, sequence = own.numbers("sent_s"), own.column("sequence_bytes").values
    # A retransmission replaces the last transmission of its octets: consecutive streams use the same numbers.
    order = np.argsort(sequence, kind="stable")
    again = sequence[order[1:]] == sequence[order[:-1]]
    before = np.arange(own.height)
    before[order[1:][again]] = order[:-1][again]
    shown: dict[int, int] = {}
    ladders: list[list[int]] = []
    for time, start in chosen[:MOST_LADDERS]:
        near = range(*np.searchsorted(sent, [time - 2 * _PRECISION, time + 2 * _PRECISION]))
        same = (i for i in reversed(near) if sequence[i] == start and round(float(sent[i]), 9) == round(time, 9))
        at = next(same, None)
        ladders.append([] if at is None else _ladder(int(before[at]), at, own.height, shown))
    return {"rows": _rows(own, list(shown)), "ladders": ladders, "ladders_of": len(chosen)}


def _ladder(original: int, again: int, count: int, shown: dict[int, int]) -> list[int]:
    """The rows around an original and its retransmission, as indices into the rows of the page."""
    first = range(max(original - _BEFORE_ORIGINAL, 0), min(original + _AFTER_ORIGINAL + 1, count))
    last = range(max(again - _BEFORE, 0), min(again + _AFTER + 1, count))
    made = [shown.setdefault(i, len(shown)) for i in first if i < last.start]
    if made and last.start > first.stop:
        made.append(first.stop - last.start)
    return made + [shown.setdefault(i, len(shown)) for i in last]


def _rows(own: Table, indices: list[int]) -> list[list[Any]]:
    import numpy as np

    held = receiver(own)
    after: dict[int, tuple[int, bool]] = {}
    if held is not None:
        shown = np.flatnonzero(np.isin(held.rows, indices))
        after = {int(held.rows[i]): (int(held.rcv_nxt[i]), bool(held.held[i])) for i in shown}
    columns = ("sent_s", "received_s", "sequence_bytes", "payload_bytes", "retransmission", "where")
    part = own.select(*columns).take(indices)
    rows = []
    for index, (sent, received, start, octets, again, where) in zip(indices, part, strict=True):
        edge, was = after.get(index, (None, False))
        times = [round(sent, 7), None if received is None else round(received, 7)]
        rows.append([*times, start, octets, again, where, edge, was])
    return rows
