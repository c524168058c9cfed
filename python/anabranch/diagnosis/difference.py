"""Two captures of the same service, before and after a change: what differs by more than its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from anabranch.diagnosis.diagnosis import Diagnosis, directions, main_direction, shares
from anabranch.diagnosis.document import Connection, Estimate, Limit
from anabranch.diagnosis.rollup import active_s, host, port
from anabranch.errors import UserError
from anabranch.text import shown

LEVEL = 0.95
"""The probability that no interval of a comparison misses its difference (Bonferroni)."""
LEAST = 4
"""Connections of each capture from which an interval over connections is computed."""
MOST = 400
"""Connections of a capture in an interval, evenly chosen: it takes the differences of all pairs."""
LEAST_SHARE = 0.01
"""A limit with a smaller share in both captures is not compared."""
MOST_GROUPS = 200
"""Groups that are compared, those of most connections."""

Verdict = Literal["changed", "unchanged", "undecided"]
Key = Literal["server and port", "port", "server"]


class Measured(TypedDict):
    """A measure in both captures.

    Attributes:
        measure: Its name; ``limit NAME`` is the share of the time by a limit.
        unit: Its unit; ``%`` for shares.
        old: Its value in the first capture: a median over connections, or a pooled share; ``null`` without a value.
        new: Its value in the second capture.
        difference: The shift from the first to the second.
        low: The low end of the shift's interval; ``null`` if there are too few connections.
        high: The high end.
        verdict: ``changed`` if the interval excludes 0, ``undecided`` without an interval.
    """

    measure: str
    unit: str
    old: float | None
    new: float | None
    difference: float | None
    low: float | None
    high: float | None
    verdict: Verdict


class GroupChange(TypedDict):
    """The connections of one server in both captures.

    Attributes:
        key: The server and port.
        old: Its connections in the first capture.
        new: Its connections in the second one.
        main_limit: The largest limit in both captures.
        measures: The measures, changed ones first.
    """

    key: str
    old: int
    new: int
    main_limit: tuple[Limit | None, Limit | None]
    measures: list[Measured]


class Comparison(TypedDict):
    """A comparison of two captures.

    Attributes:
        format: 1.
        old: The first capture.
        new: The second capture.
        by: The property by which connections of both are compared.
        level: The probability that no interval misses its difference.
        sentence: The changes in a sentence.
        groups: The servers that both captures have, those with most changes first.
        only_old: Servers of the first capture alone.
        only_new: Servers of the second one alone.
    """

    format: int
    old: str
    new: str
    by: Key
    level: float
    sentence: str
    groups: list[GroupChange]
    only_old: list[str]
    only_new: list[str]


@dataclass(frozen=True)
class _Interval:
    difference: float
    low: float | None
    high: float | None


_Values = Callable[[Connection], "float | None"]


def compare(old: Diagnosis, new: Diagnosis) -> Comparison:
    """Compare the connections of two captures, server by server.

    Raises:
        UserError: They have no server in common, nor a port.
    """
    by, groups = _groups(old, new)
    both = [(key, one, other) for key, (one, other) in groups.items() if one and other]
    both.sort(key=lambda group: -min(len(group[1]), len(group[2])))
    both = both[:MOST_GROUPS]
    tests = sum(len(list(_measures(one, other))) for _, one, other in both)
    z = statistics.NormalDist().inv_cdf(1 - (1 - LEVEL) / (2 * max(tests, 1)))
    made = [_compared(key, one, other, z) for key, one, other in both]
    made.sort(key=lambda group: (-_changes(group), -group["old"] - group["new"], group["key"]))
    return {
        "format": 1, "old": old["file"], "new": new["file"], "by": by, "level": LEVEL,
        "sentence": _sentence(made), "groups": made,
        "only_old": [key for key, (one, other) in groups.items() if not other],
        "only_new": [key for key, (one, other) in groups.items() if not one],
    }  # fmt: skip


_KEYS: tuple[tuple[Key, Callable[[Connection], str]], ...] = (
    ("server and port", lambda one: one["b"]),
    ("port", lambda one: f"port {port(one['b'])}"),
    ("server", lambda one: host(one["b"])),
)


def _groups(old: Diagnosis, new: Diagnosis) -> tuple[Key, dict[str, tuple[list[Connection], list[Connection]]]]:
    """The connections of both by the first property that has values in common."""
    for by, key in _KEYS:
        made: dict[str, tuple[list[Connection], list[Connection]]] = {}
        for place, document in enumerate((old, new)):
            for one in document.content["connections"]:
                made.setdefault(key(one), ([], []))[place].append(one)
        if any(one and other for one, other in made.values()):
            return by, made
    servers = [_some(document) for document in (old, new)]
    raise UserError(
        f"{shown.plain(old['file'])} and {shown.plain(new['file'])} have no server and no port in common",
        hint=f"the first has {servers[0]}, the second {servers[1]}",
    )


def _some(document: Diagnosis) -> str:
    ends = list(dict.fromkeys(one["b"] for one in document.content["connections"]))
    return ", ".join(ends[:3]) + (" …" if len(ends) > 3 else "") if ends else "no TCP connection"


def _changes(group: GroupChange) -> int:
    return sum(one["verdict"] == "changed" for one in group["measures"])


def _compared(key: str, old: Sequence[Connection], new: Sequence[Connection], z: float) -> GroupChange:
    measures = [make(z) for make in _measures(old, new)]
    order = {"changed": 0, "unchanged": 1, "undecided": 2}
    measures.sort(key=lambda one: order[one["verdict"]])
    return {
        "key": key, "old": len(old), "new": len(new), "main_limit": (_main_limit(old), _main_limit(new)),
        "measures": measures,
    }  # fmt: skip


def _main_limit(connections: Sequence[Connection]) -> Limit | None:
    times: dict[Limit, float] = {}
    for one in connections:
        for limit, share in _shares(one).items():
            times[limit] = times.get(limit, 0.0) + share * active_s(one)
    ranked = sorted(times.items(), key=lambda one: -one[1])
    return ranked[0][0] if any(times.values()) else None


def _shares(connection: Connection) -> dict[Limit, float]:
    return shares(connection, main_direction(connection)[1])


def _trip(name: Literal["min", "median"]) -> _Values:
    return lambda one: main_direction(one)[1]["rtt_ms"][name]


def _think_ms(direction: Literal["a_to_b", "b_to_a"]) -> _Values:
    """The time that an end takes before each answer."""

    def value(one: Connection) -> float | None:
        way = one["directions"][direction]
        return 1e3 * way["answering_s"] / way["turns"] if way["turns"] else None

    return value


def _window(one: Connection) -> float | None:
    octets = one["path"].get("flow", {}).get("receive_window_bytes")
    return None if octets is None else float(octets) / 1e3


def _loss_rate(one: Connection) -> Estimate | None:
    loss = one["path"].get("loss")
    return None if loss is None else loss["rate"]


def _open_ms(one: Connection) -> float | None:
    """The time of the handshake, if it was captured and the connection opened."""
    return 1e3 * one["directions"]["a_to_b"]["limits_s"]["handshake"] if one["handshake"] == "seen" else None


_MEASURES: Mapping[str, tuple[str, _Values]] = {
    "goodput": ("Mbit/s", lambda one: main_direction(one)[1]["goodput_mbit_s"] or None),
    "median round trip": ("ms", _trip("median")),
    "least round trip": ("ms", _trip("min")),
    "time to open": ("ms", _open_ms),
    "answer time of the server": ("ms", _think_ms("b_to_a")),
    "answer time of the client": ("ms", _think_ms("a_to_b")),
    "receiver's window": ("kB", _window),
}
_ESTIMATES: Mapping[str, tuple[str, float, Callable[[Connection], Estimate | None]]] = {
    "least round trip": ("ms", 1.0, lambda one: one["path"].get("base_rtt_ms")),
    "bottleneck rate": ("Mbit/s", 1.0, lambda one: one["path"].get("rate_mbit_s")),
    "random loss": ("%", 100.0, _loss_rate),
}
"""Properties of the path whose intervals a single connection has."""


def _measures(old: Sequence[Connection], new: Sequence[Connection]) -> Iterator[Callable[[float], Measured]]:
    """The comparisons of a group, each of which needs the quantile of its intervals."""
    is_few = min(len(old), len(new)) < LEAST
    for name, (unit, value) in _MEASURES.items():
        if is_few and name in _ESTIMATES:
            continue
        known = [[found for one in side if (found := value(one)) is not None] for side in (old, new)]
        if any(known):
            yield _shift(name, unit, known[0], known[1])
    if is_few:
        for name, (unit, scale, estimate) in _ESTIMATES.items():
            yield from _estimated(name, unit, scale, [_single(side, estimate) for side in (old, new)])
    yield _pooled("lost segments", old, new, _needed, _segments)
    yield _pooled("spurious retransmissions", old, new, _spurious, _segments)
    yield _pooled("failed connections", old, new, lambda one: float(one["failure"] is not None), lambda _: 1.0)
    # Without the handshake windows have no scale, and no time is the handshake's: the shares are others.
    sides = [[_shares(one) for one in side if one["handshake"] != "missed"] for side in (old, new)]
    limits: list[Limit] = list(next((one for side in sides for one in side), {}))
    for limit in limits:
        parts = [[100.0 * one[limit] for one in side] for side in sides]
        if max(statistics.fmean(part) for part in parts if part) >= 100.0 * LEAST_SHARE:
            yield _shift(f"limit {limit}", "%", parts[0], parts[1])


def _shift(name: str, unit: str, old: Sequence[float], new: Sequence[float]) -> Callable[[float], Measured]:
    def make(z: float) -> Measured:
        found = hodges_lehmann(old, new, z) if old and new else None
        values = [statistics.median(side) if side else None for side in (old, new)]
        return _measured(name, unit, values[0], values[1], found)

    return make


def hodges_lehmann(old: Sequence[float], new: Sequence[float], z: float) -> _Interval:
    """The shift from one sample to another: the median of all differences, with a distribution-free interval.

    The interval ends at order statistics of the differences (Hodges and Lehmann 1963; Mann and Whitney's U with its
    normal approximation). It has none if the samples are too small for the level.
    """
    first, second = _thinned(old), _thinned(new)
    differences = sorted(b - a for a in first for b in second)
    m, n = len(first), len(second)
    place = math.floor(m * n / 2 - z * math.sqrt(m * n * (m + n + 1) / 12) - 0.5)
    middle = statistics.median(differences)
    if place < 0 or min(m, n) < LEAST:
        return _Interval(middle, None, None)
    return _Interval(middle, differences[place], differences[-1 - place])


def _thinned(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    if len(ordered) <= MOST:
        return ordered
    return [ordered[round(i * (len(ordered) - 1) / (MOST - 1))] for i in range(MOST)]


def _segments(one: Connection) -> float:
    return float(sum(way["data_packets"] for _, way in directions(one)))


def _needed(one: Connection) -> float:
    return float(sum(way["retransmission_counts"]["needed"] for _, way in directions(one)))


def _spurious(one: Connection) -> float:
    return float(sum(way["retransmission_counts"]["spurious"] for _, way in directions(one)))


def _pooled(
    name: str,
    old: Sequence[Connection],
    new: Sequence[Connection],
    part: Callable[[Connection], float],
    of: Callable[[Connection], float],
) -> Callable[[float], Measured]:
    """The difference of shares over all connections; a connection is a cluster, because its losses come in bursts."""

    def make(z: float) -> Measured:
        sides = [ratio([part(one) for one in side], [of(one) for one in side]) for side in (old, new)]
        values = [None if share is None else 100.0 * share for share, _ in sides]
        if values[0] is None or values[1] is None:
            return _measured(name, "%", values[0], values[1], None)
        difference = values[1] - values[0]
        errors = [error for _, error in sides]
        if min(len(old), len(new)) < LEAST or errors[0] is None or errors[1] is None:
            return _measured(name, "%", values[0], values[1], _Interval(difference, None, None))
        half = 100.0 * z * math.sqrt(errors[0] + errors[1])
        return _measured(name, "%", values[0], values[1], _Interval(difference, difference - half, difference + half))

    return make


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> tuple[float | None, float | None]:
    """A share over clusters and its variance (Cochran 1977, ratio estimator).

    Without any part the variance is that of one cluster's half part, so that an absence has an interval too.
    """
    total, n = sum(wholes), len(wholes)
    if not total:
        return None, None
    share = sum(parts) / total
    if n < 2:
        return share, None
    spread = sum((part - share * whole) ** 2 for part, whole in zip(parts, wholes, strict=True))
    least = 0.25 * min(share, 1 - share) if 0 < share < 1 else 0.25
    return share, max(spread * n / (n - 1), least) / total**2


def _single(side: Sequence[Connection], estimate: Callable[[Connection], Estimate | None]) -> Estimate | None:
    """The estimate of the connection with the most data."""
    chosen = max(side, key=lambda one: main_direction(one)[1]["bytes"])
    return estimate(chosen)


def _estimated(
    name: str, unit: str, scale: float, sides: Sequence[Estimate | None]
) -> Iterator[Callable[[float], Measured]]:
    """The comparison of two estimates with 95 % intervals, widened to the level as normal ones."""
    values = [None if side is None or side["seen"] != "measured" else side for side in sides]
    if all(side is None for side in values):
        return

    def make(z: float) -> Measured:
        old, new = (None if side is None or side["value"] is None else side["value"] * scale for side in values)
        if old is None or new is None:
            return _measured(name, unit, old, new, None)
        wide = z / statistics.NormalDist().inv_cdf(0.975)
        halves = []
        for side in values:
            if side is None or side["low"] is None or side["high"] is None:
                return _measured(name, unit, old, new, _Interval(new - old, None, None))
            halves.append(wide * scale * (side["high"] - side["low"]) / 2)
        half = math.hypot(*halves)
        return _measured(name, unit, old, new, _Interval(new - old, new - old - half, new - old + half))

    yield make


def _measured(name: str, unit: str, old: float | None, new: float | None, found: _Interval | None) -> Measured:
    verdict: Verdict = "undecided"
    if found is not None and found.low is not None and found.high is not None:
        verdict = "changed" if found.low > 0 or found.high < 0 else "unchanged"
    return {
        "measure": name, "unit": unit, "old": old, "new": new,
        "difference": None if found is None else found.difference,
        "low": None if found is None else found.low, "high": None if found is None else found.high,
        "verdict": verdict,
    }  # fmt: skip


def _sentence(groups: Sequence[GroupChange]) -> str:
    changed = [group for group in groups if _changes(group)]
    if not changed:
        decided = any(one["verdict"] == "unchanged" for group in groups for one in group["measures"])
        told = "Nothing differs by more than its interval"
        return f"{told}." if decided else f"{told}: there are too few connections for intervals."
    first = changed[0]
    names = [change_text(one) for one in first["measures"] if one["verdict"] == "changed"]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    rest = f" {len(changed) - 1:,} other servers changed too." if len(changed) > 1 else ""
    return f"{first['key']} changed: {', '.join(names[:3])}{more}.{rest}"


def change_text(one: Measured) -> str:
    """A change in a few words."""
    name = one["measure"].replace("-", " ")
    return f"{name} {value_text(one['old'], one['unit'])} to {value_text(one['new'], one['unit'])}"


def value_text(value: float | None, unit: str) -> str:
    """A value with its unit."""
    if value is None:
        return "none"
    return f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.0005 else "0"


def lines(found: Comparison) -> Iterator[str]:
    """The comparison in lines of at most 80 columns."""
    from anabranch.text.lines import wrapped

    yield from wrapped(f"{shown.plain(found['old'])} and then {shown.plain(found['new'])}, by {found['by']}", "  ")
    yield from wrapped(found["sentence"], "  ")
    for group in found["groups"][:MOST_SHOWN]:
        yield ""
        before, after = (limit.replace("-", " ") if limit else "none" for limit in group["main_limit"])
        limits = f"mostly limited by {before}" if before == after else f"mostly limited by {before}, then by {after}"
        yield from wrapped(f"{group['key']}: {group['old']:,} and {group['new']:,} connections, {limits}", "  ")
        changed = [one for one in group["measures"] if one["verdict"] == "changed"]
        for one in changed:
            low, high = (_signed(one[end]) for end in ("low", "high"))
            difference = _signed(one["difference"])
            yield from wrapped(f"  {change_text(one)} ({difference}; {low} to {high} {one['unit']})", "    ")
        if not changed:
            yield "  no change"
        for verdict, word in (("unchanged", "within the interval"), ("undecided", "undecided, too few connections")):
            names = [one["measure"].replace("-", " ") for one in group["measures"] if one["verdict"] == verdict]
            if names:
                yield from wrapped(f"  {word}: {', '.join(names)}", "    ")
    if len(found["groups"]) > MOST_SHOWN:
        yield f"{len(found['groups']) - MOST_SHOWN:,} more servers; --json lists them"
    for names, which in ((found["only_old"], "first"), (found["only_new"], "second")):
        if names:
            more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
            yield from wrapped(f"only in the {which} capture: {', '.join(names[:5])}{more}", "  ")


MOST_SHOWN = 5
"""Servers of the screen."""


def _signed(value: float | None) -> str:
    if value is None:
        return "none"
    text = _digits(value)
    return f"+{text}" if value > 0 and text != "0" else text
