"""Pairs of connections that two captures have in common, also through NAT and with rewritten headers."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from anabranch.diagnosis.document import Connection
from anabranch.multipoint.listing import (
    FIN,
    FROM_A,
    HAS_ID,
    HAS_STAMPS,
    RST,
    SYN,
    Flags,
    Indices,
    Listing,
    Numbers,
    Rows,
    flagged,
    groups,
    has,
    is_among,
    mixed,
)

By = Literal["addresses", "sequence-numbers", "timestamps", "sizes"]
"""The property by which two connections are paired."""
ENOUGH = 2
"""Packets in common that make a pair; a connection of one packet needs one."""
SIGNATURE = 32
"""Packets with data of the signature of a connection, whose sequence of sizes identifies it."""


@dataclass(frozen=True)
class Pair:
    """A connection at two points.

    Attributes:
        first: The connection in the first capture.
        second: The connection in the second capture.
        is_flipped: The end ``a`` of the connection is ``b`` in the second capture, because it began after the SYN.
        by: The property by which they are paired.
        is_by_sequence: Their absolute sequence numbers agree, which chance does not explain.
        first_is_flipped: The end ``a`` is ``b`` in the first capture, if a point before it has the connection too.
    """

    first: Connection
    second: Connection
    is_flipped: bool
    by: By
    is_by_sequence: bool = False
    first_is_flipped: bool = False


@dataclass(frozen=True)
class _Keyed:
    """Keys of rows, each of which belongs to one connection of a capture."""

    keys: Numbers
    connections: Indices
    is_from_a: Flags


def pair_connections(first: Listing, second: Listing) -> list[Pair]:
    """The connections that both captures have, in the order of the first one.

    Each property is tried on the connections that the properties before it left over: the addresses with the sequence
    numbers; sequence numbers alone, which NAT preserves; timestamps alone, which a change of the sequence numbers
    preserves; addresses with identifications or relative sequence numbers; sizes and an address alone.
    """
    known = [{one["id"]: one for one in each.diagnosis.content["connections"]} for each in (first, second)]
    left = [_ListedRows(listing, names) for listing, names in zip((first, second), known, strict=True)]
    made: list[Pair] = []
    for by, key in _LEVELS:
        if not all(len(side.rows) for side in left):
            break
        keyed = [_owned(*key(side)) for side in left]
        for one, other, is_flipped in _votes(*keyed):
            is_by_sequence = key in (_addresses_and_sequence, _sequence)
            made.append(Pair(known[0][one], known[1][other], is_flipped, by, is_by_sequence))
        left[0] = left[0].without({pair.first["id"] for pair in made})
        left[1] = left[1].without({pair.second["id"] for pair in made})
    return sorted(made, key=lambda pair: pair.first["id"])


class _ListedRows:
    """The rows of a capture's connections that are not paired yet."""

    def __init__(self, listing: Listing, known: dict[int, Connection]) -> None:
        self.known = known
        self.rows = _of_connections(listing.rows, known)

    def without(self, paired: set[int]) -> _ListedRows:
        """The rows of the other connections."""
        made = _ListedRows.__new__(_ListedRows)
        made.known = {number: one for number, one in self.known.items() if number not in paired}
        made.rows = _of_connections(self.rows, made.known)
        return made

    def ends(self) -> Numbers:
        """A number for the two ends of each row's connection."""
        return self._of_names(lambda one: " ".join(sorted((one["a"], one["b"]))))

    def answering_end(self) -> Numbers:
        """A number for the end that accepted each row's connection."""
        return self._of_names(lambda one: one["b"])

    def _of_names(self, name: Callable[[Connection], str]) -> Numbers:
        numbers = np.fromiter(sorted(self.known), np.int64, len(self.known))
        hashed = [
            int.from_bytes(hashlib.blake2b(name(self.known[int(each)]).encode(), digest_size=8).digest(), "little")
            for each in numbers
        ]
        return np.array(hashed, np.uint64)[np.searchsorted(numbers, self.rows["connection"])]

    def relative(self) -> tuple[Numbers, Flags]:
        """Sequence numbers relative to the SYN of their direction, and the rows of directions with one."""
        rows = self.rows
        direction = rows["connection"].astype(np.int64) * 2 + has(rows, FROM_A)
        is_syn = flagged(rows, SYN)
        syns, first = np.unique(direction[is_syn], return_index=True)
        if not len(syns):
            return np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
        base = rows["seq"][is_syn][first]
        at = np.minimum(np.searchsorted(syns, direction), len(syns) - 1)
        return (rows["seq"] - base[at]).astype(np.uint64), syns[at] == direction


def _of_connections(rows: Rows, known: dict[int, Connection]) -> Rows:
    numbers = np.fromiter(sorted(known), np.int64, len(known))
    is_known = is_among(rows["connection"], numbers)
    found: Rows = rows if is_known.all() else rows[is_known]
    return found


def _parts(rows: Rows) -> tuple[Numbers, Numbers]:
    """Octets of data, and the control bits that number octets or end a connection."""
    return rows["bytes"].astype(np.uint64), (rows["flags"] & np.uint16(SYN | FIN | RST)).astype(np.uint64)


Keys = tuple[Rows, Numbers]
"""Rows, and a key of each."""


def _addresses_and_sequence(side: _ListedRows) -> Keys:
    return side.rows, mixed(side.ends(), side.rows["seq"], *_parts(side.rows))


def _sequence(side: _ListedRows) -> Keys:
    # A segment without data has the number of the data after it: it identifies nothing more.
    rows = side.rows[(side.rows["bytes"] > 0) | flagged(side.rows, SYN)]
    return rows, mixed(rows["seq"], *_parts(rows))


def _timestamps(side: _ListedRows) -> Keys:
    rows = side.rows[has(side.rows, HAS_STAMPS)]
    return rows, mixed(rows["ts_value"], rows["ts_echo"], *_parts(rows))


def _addresses_and_identifications(side: _ListedRows) -> Keys:
    is_used = has(side.rows, HAS_ID) & (side.rows["ip_id"] != 0)
    return side.rows[is_used], mixed(side.ends(), side.rows["ip_id"], *_parts(side.rows))[is_used]


def _addresses_and_sizes(side: _ListedRows) -> Keys:
    seq, is_known = side.relative()
    return side.rows[is_known], mixed(side.ends(), seq, *_parts(side.rows))[is_known]


def _signatures(side: _ListedRows) -> Keys:
    """One row for each connection: the sizes of its first segments with data, and the end that accepted it."""
    seq, is_known = side.relative()
    is_used = is_known & (side.rows["bytes"] > 0)
    rows, seq, end = side.rows[is_used], seq[is_used], side.answering_end()[is_used]
    way = has(rows, FROM_A)
    # A segment and its retransmissions count once, in the order of their octets.
    order = np.lexsort((rows["bytes"], seq, way, rows["connection"]))
    whole = mixed(rows["connection"], way, seq)[order]
    order = order[np.concatenate(([True], whole[1:] != whole[:-1]))] if len(order) else order
    rows, seq, end, way = rows[order], seq[order], end[order], way[order]
    _, begins = groups(rows["connection"])
    chosen: list[int] = []
    signatures: list[int] = []
    for start, stop in itertools.pairwise(begins):
        some = slice(start, min(stop, start + SIGNATURE))
        parts = mixed(way[some], seq[some], rows["bytes"][some])
        chosen.append(int(start))
        digest = hashlib.blake2b(parts.tobytes() + end[start].tobytes(), digest_size=8).digest()
        signatures.append(int.from_bytes(digest, "little"))
    return rows[chosen], np.array(signatures, np.uint64)


_LEVELS: tuple[tuple[By, Callable[[_ListedRows], Keys]], ...] = (
    ("addresses", _addresses_and_sequence),
    ("sequence-numbers", _sequence),
    ("timestamps", _timestamps),
    ("addresses", _addresses_and_identifications),
    ("addresses", _addresses_and_sizes),
    ("sizes", _signatures),
)


def _owned(rows: Rows, keys: Numbers) -> _Keyed:
    """Keys that one connection alone has, once each."""
    connections = rows["connection"].astype(np.int64)
    order = np.lexsort((connections, keys))
    keys, connections, is_from_a = keys[order], connections[order], has(rows, FROM_A)[order]
    if not len(keys):
        return _Keyed(keys, connections, is_from_a)
    is_new_key = np.concatenate(([True], keys[1:] != keys[:-1]))
    is_new = is_new_key | np.concatenate(([True], connections[1:] != connections[:-1]))
    of_key = np.cumsum(is_new_key) - 1
    owners = np.bincount(of_key, weights=is_new)
    chosen = is_new_key & (owners[of_key] == 1)
    return _Keyed(keys[chosen], connections[chosen], is_from_a[chosen])


def _votes(one: _Keyed, other: _Keyed) -> Iterator[tuple[int, int, bool]]:
    """Connections with the most keys in common: both numbers, whether directions are exchanged."""
    _, left, right = np.intersect1d(one.keys, other.keys, assume_unique=True, return_indices=True)
    if not len(left):
        return
    both = (one.connections[left].astype(np.uint64) << np.uint64(32)) | other.connections[right].astype(np.uint64)
    pairs, at, counts = np.unique(both, return_inverse=True, return_counts=True)
    crossed = np.bincount(at, weights=one.is_from_a[left] != other.is_from_a[right])
    sizes = [np.unique(side.connections, return_counts=True) for side in (one, other)]
    size = [dict(zip(numbers.tolist(), of.tolist(), strict=True)) for numbers, of in sizes]
    used: tuple[set[int], set[int]] = (set(), set())
    for index in np.argsort(-counts, kind="stable").tolist():
        first, second = int(pairs[index]) >> 32, int(pairs[index]) & 0xFFFFFFFF
        count = int(counts[index])
        if first in used[0] or second in used[1] or count < min(ENOUGH, size[0][first], size[1][second]):
            continue
        used[0].add(first)
        used[1].add(second)
        yield first, second, bool(crossed[index] * 2 > count)
