"""Many connections in words: a sentence, a table by server, client, port or time, and outliers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.diagnosis.rollup import By, Group, Outlier, Rollup, limits_of, roll_up
from anabranch.text import shown
from anabranch.text.lines import amount, number, percent, wrapped

MANY = 10
"""More connections than these are summed up before the table of connections."""
MOST_GROUPS = 3
"""Groups of the first screen."""
MOST_LISTED = 40
"""Groups and outliers of ``--by``."""
MOST_OUTLIERS = 3
"""Outliers of the first screen."""

MEASURES: Mapping[str, tuple[str, str]] = {
    "duration_s": ("takes", "s"),
    "goodput_mbit_s": ("has", "Mbit/s"),
    "rtt_ms": ("has a round trip of", "ms"),
    "lost_s": ("lost", "s"),
}
"""A verb and the unit of each measure of an outlier."""
_WIDTHS = (7, 6, 9, 9, 8, 9, 9)
_HEAD = ("conn.", "bad", "bytes", "Mbit/s", "RTT ms", "retr.", "slowest")
_KEY = 22


def screen(document: Diagnosis) -> Iterator[str]:
    """The connections as a whole, for the first screen."""
    found = roll_up(document)
    yield from wrapped(found["sentence"], "  ")
    yield ""
    by: By = "server" if len(found["groups"]["server"]) > 1 else "client"
    yield from table(found["groups"][by], by, MOST_GROUPS)
    outliers = found["outliers"][:MOST_OUTLIERS]
    for outlier in outliers:
        yield from wrapped(f"  {outlier_text(outlier)}", "    ")


def whole(found: Rollup, by: By) -> Iterator[str]:
    """All groups of a key, and the outliers."""
    yield from wrapped(found["sentence"], "  ")
    yield ""
    yield from table(found["groups"][by], by, MOST_LISTED)
    if found["outliers"]:
        yield ""
        yield "Outliers among connections to the same server and port:"
        for outlier in found["outliers"]:
            yield from wrapped(f"  {outlier_text(outlier)}", "    ")


def chosen_text(all_of_it: Diagnosis, chosen: Diagnosis) -> str:
    """How the chosen connections fare beside the others; empty if there are no others."""
    own = {one["id"] for one in chosen.content["connections"]}
    count = len(all_of_it.content["connections"])
    if len(own) == count:
        return ""
    bad = [one["id"] for one in roll_up(all_of_it)["bad"]]
    inside = sum(number in own for number in bad)
    rest = len(bad) - inside
    others = count - len(own)
    verb = "is" if inside == 1 else "are"
    bad_text = "none is bad" if not inside else f"{inside:,} {verb} bad"
    rest_text = "none" if not rest else f"{rest:,} ({percent(rest / others)})"
    return f"{len(own):,} of {count:,} connections match: {bad_text}. Bad among the other {others:,}: {rest_text}."


def table(groups: Sequence[Group], by: By, most: int) -> Iterator[str]:
    """Two lines for each group, the second with its limits; a long key has a separate line."""
    yield _line(by, _HEAD)
    for group in groups[:most]:
        key = key_text(group["key"], by)
        figures = (
            f"{group['connections']:,}",
            f"{group['bad']:,}",
            amount(group["bytes"]),
            number(group["goodput_mbit_s"]),
            number(group["rtt_ms"]),
            f"{group['retransmitted']:.1%}".replace("%", " %"),
            f"#{group['slowest']}",
        )
        if len(key) > _KEY:
            yield key
            key = ""
        yield _line(key, figures)
        yield f"    {limits_of(group, 3)}"
    if len(groups) > most:
        yield f"{len(groups) - most:,} more; --by {by} lists {min(len(groups), MOST_LISTED):,}"


def _line(key: str, figures: Sequence[str]) -> str:
    return f"{key:<{_KEY}}{''.join(map(str.rjust, figures, _WIDTHS))}"


def key_text(key: str, by: By) -> str:
    """The key of a group; a time as a clock time of this machine's zone."""
    return datetime.fromtimestamp(float(key)).strftime("%m-%d %H:%M:%S") if by == "time" else shown.plain(key)


def outlier_text(outlier: Outlier) -> str:
    """An outlier in words."""
    verb, unit = MEASURES[outlier["measure"]]
    return (
        f"connection {outlier['id']} to {outlier['server']} {verb} {number(outlier['value'])} {unit}; the median of "
        f"its {outlier['peers']:,} peers is {number(outlier['usual'])} {unit}"
    )
