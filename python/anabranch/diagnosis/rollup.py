"""Many connections at once: the bad ones and what they have in common, sums by key, outliers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict

from anabranch.diagnosis.diagnosis import Diagnosis, directions, main_direction, shares
from anabranch.diagnosis.document import Cause, Connection, Limit
from anabranch.errors import UserError, nearest
from anabranch.text.lines import percent
from anabranch.text.spoken import argument

By = Literal["server", "client", "port", "time"]
KEYS: tuple[By, ...] = ("server", "client", "port", "time")
"""What connections are rolled up by."""
LEAST_LOST_S, LEAST_LOST_SHARE = 1.0, 0.25
"""A connection that did not fail is bad if it lost at least this time, and this share of its active time."""
SHORT_LOST_S, SHORT_LOST_SHARE = 0.2, 0.5
"""A short one is bad if it lost this time and share, and takes ``FACTOR`` times as long as its port's median."""
MOSTLY = 0.9
"""A property is common to the bad connections if this share of them has it."""
PEERS = 8
"""Connections of one server and port from which a usual value is known."""
FAR = 5.0
"""An outlier is this many scaled median absolute deviations from its peers' median (Iglewicz and Hoaglin use 3.5)."""
FACTOR = 2.0
"""An outlier differs from its peers' median by this factor as well, so that equal peers make no outliers."""
MOST_OUTLIERS = 20
BINS = 12
"""Intervals of time."""
_SCALED = 1.4826
"""Standard deviations in a median absolute deviation of normal values."""


class Group(TypedDict):
    """Connections with one server, client, port, or time.

    Attributes:
        key: Its address, its port, or the start of its interval in s since 1970.
        connections: Their number.
        bad: The bad ones.
        failed: Those that failed.
        bytes: The data of both directions.
        time_s: The active time of all.
        lost_s: The time that they lost.
        goodput_mbit_s: The median goodput of the direction with more data; ``null`` without data.
        rtt_ms: The median of the median round trips.
        retransmitted: Retransmissions as a share of segments with data.
        limits: The shares of the active time by limit, the largest first.
        slowest: The connection that lost most time, or took longest.
    """

    key: str
    connections: int
    bad: int
    failed: int
    bytes: int
    time_s: float
    lost_s: float
    goodput_mbit_s: float | None
    rtt_ms: float | None
    retransmitted: float
    limits: dict[Limit, float]
    slowest: int


class Bad(TypedDict):
    """A bad connection.

    Attributes:
        id: Its number.
        cause: The finding or limit that made it bad.
        failed: It failed, or began late.
        lost_s: The time that it lost.
    """

    id: int
    cause: Cause
    failed: bool
    lost_s: float


class Outlier(TypedDict):
    """A connection that differs from the others of its server and port.

    Attributes:
        id: Its number.
        measure: The measure that differs.
        value: Its value.
        usual: The median of its peers.
        peers: The number of its peers.
        server: The server and port.
    """

    id: int
    measure: str
    value: float
    usual: float
    peers: int
    server: str


class Rollup(TypedDict):
    """All connections of a capture.

    Attributes:
        sentence: The bad connections and what they have in common.
        bad: The bad connections, failed ones first, then by the time lost.
        groups: The connections by each key.
        outliers: The connections that differ from their peers, the farthest first.
    """

    sentence: str
    bad: list[Bad]
    groups: dict[By, list[Group]]
    outliers: list[Outlier]


def roll_up(document: Diagnosis) -> Rollup:
    """The connections of a diagnosis as a whole."""
    connections = document.content["connections"]
    usual = _usual_s(connections)
    bad = sorted(
        (own for one in connections if (own := _bad(one, usual.get(port(one["b"])))) is not None),
        key=lambda one: (not one["failed"], -one["lost_s"], one["id"]),
    )
    found = {one["id"]: one for one in bad}
    groups: dict[By, list[Group]] = {by: _groups(connections, found, by) for by in KEYS}
    return {
        "sentence": _sentence(connections, found),
        "bad": bad,
        "groups": groups,
        "outliers": _outliers(connections),
    }


def check_key(by: str) -> By:
    """The key of a roll-up.

    Raises:
        UserError: There is no such key.
    """
    for key in KEYS:
        if key == by:
            return key
    raise UserError(f"{argument('by', by)}: expected server, client, port or time", hint=nearest(by, KEYS))


def active_s(connection: Connection) -> float:
    """The time of a connection until its last data."""
    return float(connection["duration_s"] - connection["quiet_s"])


def _usual_s(connections: Sequence[Connection]) -> dict[str, float]:
    """The median active time of the connections to each port that has enough of them."""
    times: dict[str, list[float]] = {}
    for one in connections:
        times.setdefault(port(one["b"]), []).append(active_s(one))
    return {name: statistics.median(own) for name, own in times.items() if len(own) >= PEERS}


def _bad(connection: Connection, usual_s: float | None) -> Bad | None:
    """The connection if it is bad, with its cause.

    Args:
        connection: The connection.
        usual_s: The median active time of the connections to its port.
    """
    failure = connection["failure"]
    lost: float = connection["lost_s"]
    if failure is not None:
        return {"id": connection["id"], "cause": failure, "failed": True, "lost_s": lost}
    active = active_s(connection)
    is_long = lost >= LEAST_LOST_S and lost >= LEAST_LOST_SHARE * active
    is_short = lost >= SHORT_LOST_S and lost >= SHORT_LOST_SHARE * active
    if not is_long and not (is_short and usual_s is not None and active >= FACTOR * usual_s):
        return None
    _, way = main_direction(connection)
    # Findings have shares of segments, too: the limit with most time is the cause.
    limit = next(iter(shares(connection, way)))
    return {"id": connection["id"], "cause": limit, "failed": False, "lost_s": lost}


def port(end: str) -> str:
    """The port of an end."""
    return end.rpartition(":")[2]


def host(end: str) -> str:
    """The address of an end."""
    return end.rpartition(":")[0] or end


def _key(by: By, start: float, length: float) -> Callable[[Connection], str]:
    def of_time(one: Connection) -> str:
        number = min(int((one["start_s"] - start) / length), BINS - 1) if length > 0 else 0
        return f"{start + number * length:.6f}"

    keys: Mapping[By, Callable[[Connection], str]] = {
        "server": lambda one: host(one["b"]),
        "client": lambda one: host(one["a"]),
        "port": lambda one: port(one["b"]),
        "time": of_time,
    }
    return keys[by]


def interval(connections: Sequence[Connection]) -> tuple[float, float]:
    """The first start of the connections, and the length of an interval of time."""
    starts = [one["start_s"] for one in connections]
    first, last = min(starts, default=0.0), max(starts, default=0.0)
    return first, (last - first) / BINS


def _groups(connections: Sequence[Connection], bad: Mapping[int, Bad], by: By) -> list[Group]:
    key = _key(by, *interval(connections))
    members: dict[str, list[Connection]] = {}
    for one in connections:
        members.setdefault(key(one), []).append(one)
    made = [_group(name, own, bad) for name, own in members.items()]
    if by == "time":
        return sorted(made, key=lambda one: float(one["key"]))
    return sorted(made, key=lambda one: (-one["bad"], -one["lost_s"], -one["connections"], one["key"]))


def _group(key: str, own: Sequence[Connection], bad: Mapping[int, Bad]) -> Group:
    limits: dict[Limit, float] = {}
    time = 0.0
    segments = again = octets = 0
    goodputs: list[float] = []
    trips: list[float] = []
    for one in own:
        _, way = main_direction(one)
        active = active_s(one)
        time += active
        for limit, share in shares(one, way).items():
            limits[limit] = limits.get(limit, 0.0) + share * active
        for _, direction in directions(one):
            segments += direction["data_packets"]
            again += direction["retransmission_counts"]["all"]
            octets += direction["bytes"]
        if way["goodput_mbit_s"] is not None and way["bytes"]:
            goodputs.append(way["goodput_mbit_s"])
        if way["rtt_ms"]["median"] is not None:
            trips.append(way["rtt_ms"]["median"])
    ranked = sorted(limits.items(), key=lambda one: -one[1])
    slowest = max(own, key=lambda one: (one["failure"] is not None, one["lost_s"], active_s(one)))
    return {
        "key": key, "connections": len(own), "bad": sum(one["id"] in bad for one in own),
        "failed": sum(one["failure"] is not None for one in own), "bytes": octets, "time_s": time,
        "lost_s": sum(one["lost_s"] for one in own),
        "goodput_mbit_s": statistics.median(goodputs) if goodputs else None,
        "rtt_ms": statistics.median(trips) if trips else None, "retransmitted": again / segments if segments else 0.0,
        "limits": {limit: spent / time for limit, spent in ranked if spent > 0} if time > 0 else {},
        "slowest": slowest["id"],
    }  # fmt: skip


def _sentence(connections: Sequence[Connection], bad: Mapping[int, Bad]) -> str:
    """The number of bad connections, and what they have in common that not all connections have."""
    count = len(connections)
    if not bad:
        alone = "The only connection neither failed nor lost much time."
        return alone if count == 1 else f"Of {count:,} connections none failed or lost much time."
    own = [one for one in connections if one["id"] in bad]
    told = [*_common_ends(connections, own), *_common_time(connections, own), _common_cause(own, bad)]
    verb = "is" if len(own) == 1 else "are"
    whole = "The only connection is bad" if count == 1 else f"Of {count:,} connections {len(own):,} {verb} bad"
    return f"{whole}: {', '.join(told)}."


def _common_ends(connections: Sequence[Connection], own: Sequence[Connection]) -> Iterator[str]:
    """The server with the port, or the server, or the port, and the client of most bad connections."""
    servers: tuple[tuple[str, Callable[[Connection], str]], ...] = (
        ("to", lambda one: one["b"]),
        ("to", lambda one: host(one["b"])),
        ("to port", lambda one: port(one["b"])),
    )
    for word, key in servers:
        if (value := _most(own, key)) is not None and _says_something(connections, value, key):
            yield f"{_quantity(own, value, key)} {word} {value}{_rest(connections, own, value, key)}"
            break
    value = _most(own, _client)
    if value is not None and _says_something(connections, value, _client):
        yield f"{_quantity(own, value, _client)} from {value}"


def _client(one: Connection) -> str:
    return host(one["a"])


def _most(own: Sequence[Connection], key: Callable[[Connection], str]) -> str | None:
    ((value, count),) = Counter(key(one) for one in own).most_common(1)
    return value if count >= MOSTLY * len(own) else None


def _says_something(connections: Sequence[Connection], value: str, key: Callable[[Connection], str]) -> bool:
    """Whether fewer connections than most have the value."""
    return sum(key(one) == value for one in connections) < MOSTLY * len(connections)


def _quantity(own: Sequence[Connection], value: str, key: Callable[[Connection], str]) -> str:
    count = sum(key(one) == value for one in own)
    return ("it is" if len(own) == 1 else "all") if count == len(own) else f"{count:,}"


def _rest(
    connections: Sequence[Connection], own: Sequence[Connection], value: str, key: Callable[[Connection], str]
) -> str:
    """The number of good connections with the value, if there are any."""
    good = sum(key(one) == value for one in connections) - sum(key(one) == value for one in own)
    return f" (which has {good:,} good ones)" if good else ""


def _common_time(connections: Sequence[Connection], own: Sequence[Connection]) -> Iterator[str]:
    """The time in which most bad connections began, if it is a small part of all."""
    span = interval(connections)[1] * BINS
    starts = sorted(one["start_s"] for one in own)
    if len(own) < 3 or span <= 0:
        return
    need = math.ceil(MOSTLY * len(starts))
    begin, end = min(
        ((starts[i], starts[i + need - 1]) for i in range(len(starts) - need + 1)), key=lambda one: one[1] - one[0]
    )
    others = sum(begin <= one["start_s"] <= end for one in connections)
    if end - begin > span / 4 or others > len(connections) / 2:
        return
    begin_text, end_text = (datetime.fromtimestamp(one).strftime("%H:%M:%S") for one in (begin, end))
    word = "all" if need == len(starts) else "most"
    yield (
        f"{word} begun between {begin_text} and {end_text}"
        if begin_text != end_text
        else f"{word} begun at {begin_text}"
    )


def _common_cause(own: Sequence[Connection], bad: Mapping[int, Bad]) -> str:
    causes: dict[str, int] = {}
    for one in own:
        name = bad[one["id"]]["cause"].replace("-", " ")
        causes[name] = causes.get(name, 0) + 1
    ranked = sorted(causes.items(), key=lambda one: -one[1])
    name, count = ranked[0]
    if count == len(own):
        return f"by {name}" if count == 1 else f"all by {name}"
    named = [f"{number:,} by {cause}" for cause, number in ranked[:3]]
    more = len(own) - sum(number for _, number in ranked[:3])
    return " and ".join([*named, *([f"{more:,} by others"] if more else [])])


_MEASURES: Mapping[str, Callable[[Connection], float | None]] = {
    "duration_s": active_s,
    "goodput_mbit_s": lambda one: main_direction(one)[1]["goodput_mbit_s"],
    "rtt_ms": lambda one: main_direction(one)[1]["rtt_ms"]["median"],
    "lost_s": lambda one: one["lost_s"],
}


def _outliers(connections: Sequence[Connection]) -> list[Outlier]:
    """Connections that are far from the median of the connections to the same server and port."""
    peers: dict[str, list[Connection]] = {}
    for one in connections:
        peers.setdefault(one["b"], []).append(one)
    found: list[tuple[float, Outlier]] = []
    for server, own in peers.items():
        if len(own) < PEERS:
            continue
        for measure, value_of in _MEASURES.items():
            # Times and rates differ by factors.
            known = [(one, value) for one in own if (value := value_of(one)) is not None and value > 0]
            if len(known) < PEERS:
                continue
            logs = [math.log(value) for _, value in known]
            middle = statistics.median(logs)
            spread = _SCALED * statistics.median(abs(log - middle) for log in logs)
            for (one, value), log in zip(known, logs, strict=True):
                is_worse = log < middle if measure == "goodput_mbit_s" else log > middle
                far = abs(log - middle) / spread if spread > 0 else math.inf
                if is_worse and far >= FAR and abs(log - middle) >= math.log(FACTOR):
                    found.append((far, {
                        "id": one["id"], "measure": measure, "value": value, "usual": math.exp(middle),
                        "peers": len(known) - 1, "server": server,
                    }))  # fmt: skip
    found.sort(key=lambda one: (-abs(math.log(one[1]["value"] / one[1]["usual"])), one[1]["id"]))
    return [outlier for _, outlier in found[:MOST_OUTLIERS]]


def limits_of(group: Group, most: int = 2) -> str:
    """The largest limits of a group in words."""
    named = [f"{limit.replace('-', ' ')} {percent(share)}" for limit, share in group["limits"].items() if share >= 0.01]
    return ", ".join(named[:most]) or "-"
