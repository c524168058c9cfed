"""Short names of figures: ``goodput`` for ``goodput_mbit_s``, ``queue_delay`` for ``p95_queue_delay_ms``.

A measure may be called by its name, by its name without the unit, or without the unit and the statistic before it
(``mean_``, ``min_``, ``max_``, ``p95_``, …). If a quantity has several statistics, the short name means the statistic
that tables show by default, otherwise the mean. :data:`WORDS` has further words. A short name that fits several
quantities is rejected with a list of them. The name of a flow, link or group may precede the measure:
``flow.main.goodput``, ``main.goodput``, ``bottleneck.forward.queue_delay``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.result.names import names

UNITS = {"_mbit_s": "Mbit/s", "_ms": "ms", "_s": "s", "_packets": "packets", "_bytes": "bytes", "_joules": "J"}
"""The unit for each ending of a name."""

SHOWN = (
    ("flow", "goodput_mbit_s"),
    ("flow", "mean_srtt_ms"),
    ("flow", "retransmitted_packets"),
    ("flow", "flow_completion_time_s"),
    ("flow", "mean_one_way_delay_ms"),
    ("flow", "transfers.mean_completion_time_s"),
    ("flow", "exchanges.mean_response_time_ms"),
    ("fairness", "jain_index"),
    ("link", "utilization"),
    ("link", "dropped_packets"),
    ("link", "lost_packets"),
    ("link", "p95_queue_delay_ms"),
    ("group", "energy_joules"),
    ("gateway", "mean_wait_ms"),
    ("gateway", "silent_ms"),
)
"""Section and name of the measures that tables show by default, in order."""

WORDS = {
    "rtt": ("mean_srtt_ms",),
    "loss": ("dropped_packets", "lost_packets"),
    "losses": ("dropped_packets", "lost_packets"),
    "drops": ("dropped_packets",),
    "retransmissions": ("retransmitted_packets",),
    "delay": ("mean_one_way_delay_ms", "p95_queue_delay_ms"),
    "latency": ("mean_one_way_delay_ms", "p95_queue_delay_ms"),
    "completion_time": ("flow_completion_time_s", "transfers.mean_completion_time_s"),
    "fct": ("flow_completion_time_s",),
    "fairness": ("jain_index",),
    "jain": ("jain_index",),
    "marks": ("marked_packets",),
    "utilisation": ("utilization",),
    "window": ("mean_cwnd_packets",),
}
"""Words that are no part of a name, and the measures that they may mean."""

_STATISTIC = re.compile(r"(mean|min|max|p[0-9]+)_(?=.)")
_MOST_LISTED = 12
"""Candidates that a message lists."""


def plain(name: str) -> str:
    """A name in small letters, with underscores for hyphens and blanks."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def without_unit(name: str) -> str:
    """The last part of a measure's name, without its unit: ``goodput`` of ``goodput_mbit_s``."""
    last = name.rpartition(".")[2]
    return next((last.removesuffix(end) for end in UNITS if last.endswith(end)), last)


def unit_of(name: str) -> str:
    """The unit that the end of a name indicates; empty without one."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def quantity(name: str) -> str:
    """The same without the statistic: ``queue_delay`` of ``p95_queue_delay_ms``."""
    return _STATISTIC.sub("", without_unit(name), count=1)


def heading(name: str) -> str:
    """A name in words, with its unit: ``cwnd (packets)`` of ``cwnd_packets``."""
    unit = unit_of(name)
    words = without_unit(name).replace("_", " ")
    return f"{words} ({unit})" if unit else words


def meant(written: str, names: Iterable[str]) -> list[str]:
    """The names that ``written`` may mean: one if it is a name or a short name, several if it is ambiguous.

    Args:
        written: A name, or a short name.
        names: The valid names.
    """
    known = list(dict.fromkeys(names))
    if written in known:
        return [written]
    wanted = plain(written)
    if same := [name for name in known if plain(name) == wanted]:
        return same
    if same := [name for name in WORDS.get(wanted, ()) if name in known]:
        return same
    # A top-level figure precedes one inside a part: `retransmitted_packets` before `fec.releases.retransmitted`.
    for own in ([name for name in known if "." not in name], [name for name in known if "." in name]):
        for form in (_last, without_unit, quantity):
            if same := [name for name in own if form(name) == wanted]:
                return _preferred(same)
    return []


def _last(name: str) -> str:
    return plain(name.rpartition(".")[2])


def _preferred(names: list[str]) -> list[str]:
    """The preferred one of several statistics of a quantity; all of them if none is preferred."""
    if len({quantity(name) for name in names}) > 1 or len({name.rpartition(".")[0] for name in names}) > 1:
        return names
    for chosen in (
        [name for name in names if any(name == shown for _, shown in SHOWN)],
        [name for name in names if name.rpartition(".")[2].startswith("mean_")],
    ):
        if len(chosen) == 1:
            return chosen
    return names


def one_name(written: str, names: Iterable[str], noun: str) -> str:
    """The name in ``names`` that ``written`` means.

    Args:
        written: A name, or a short name.
        names: The valid names.
        noun: The start of the message, which the name follows: ``the table has no column``.

    Raises:
        UserError: It means none of them, or several.
    """
    known = list(dict.fromkeys(names))
    found = meant(written, known)
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous(written, found)
    raise UserError(f'{noun} "{written}"', hint=near(written, known))


def ambiguous(written: str, names: Sequence[str]) -> UserError:
    """The error for a short name that fits several names."""
    return UserError(f'"{written}" is ambiguous', hint=f"give one of {', '.join(names[:_MOST_LISTED])}")


def near(written: str, names: Iterable[str], before: str = "") -> str:
    """A hint that names the nearest of ``names``, by spelling with and without unit and statistic.

    Args:
        written: The wrong name.
        names: The valid names.
        before: A prefix of each name in the hint.
    """
    forms: dict[str, str] = {}
    for name in names:
        for form in (plain(name), without_unit(name), quantity(name)):
            forms.setdefault(form, name)
    close = difflib.get_close_matches(plain(written), forms, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{before}{forms[close[0]]}"?'
    return nearest(f"{before}{written}", [f"{before}{name}" for name in forms.values()])


def figures_named(written: str, figures: Sequence[str], noun: str, others: Iterable[str] = ()) -> list[str]:
    """The figures that ``written`` names: one, or the same measure of several flows or links.

    Args:
        written: A figure (``flow.main.goodput_mbit_s``), its last parts, or a short name.
        figures: All figures.
        noun: The start of the message, which the name follows: ``the sweep has no figure``.
        others: Further valid names, for the hint.

    Raises:
        UserError: There is none, or the short name is ambiguous.
    """
    from anabranch.result.measures import columns_of

    if written in figures:
        return [written]
    if "." in written and (found := [figure for figure in figures if figure.endswith(f".{written}")]):
        return found
    columns = columns_of(figures)
    owner, _, last = written.rpartition(".")
    names = meant(last, (column.measure.name for column in columns))
    own = [column for column in columns if not owner or f".{owner}." in f".{_owner(column)}."]
    if names:
        there = [name for name in names if any(column.measure.name == name for column in own)]
        if len(there) > 1:
            raise ambiguous(written, there)
        if there:
            return [column.figure for column in own if column.measure.name == there[0]]
        # The measure exists, but not for this flow or link.
        having = [column.figure for column in columns if column.measure.name in names]
        raise UserError(f'{noun} "{written}"', hint=nearest(written, having))
    if owner and own:
        raise UserError(f'{noun} "{written}"', hint=near(last, (column.measure.name for column in own), f"{owner}."))
    pool = [column.figure for column in columns] if owner else [column.measure.name for column in columns]
    pool += [form for other in others for form in (other, other.rpartition(".")[2])]
    raise UserError(f'{noun} "{written}"', hint=near(written, pool))


def _owner(column: Any) -> str:
    owner: str = column.figure.removesuffix(f".{column.measure.name}")
    return owner


def one_figure(written: str, figures: Sequence[str], noun: str, others: Iterable[str] = ()) -> str:
    """The single figure that ``written`` names; a flow's name means its copies. For the arguments, see above.

    Raises:
        UserError: There is none, there are several, or the short name is ambiguous.
    """
    from anabranch.result.measures import columns_of, without_copies

    found = figures_named(written, figures, noun, others)
    if len(found) > 1:
        found = [column.figure for column in without_copies(columns_of(found))] or found
    if len(found) > 1:
        raise ambiguous(written, found)
    return found[0]


_ELEMENTS = {
    "flows.NAME": "flow",
    "links.NAME.DIRECTION": "link",
    "groups.NAME": "group",
    "gateways.NAME.DIRECTION": "gateway",
    "fairness": "fairness",
}


@cache
def catalogue() -> dict[str, tuple[str, ...]]:
    """Every measure of a summary, by section, without measures that are named by a route, a reason or a state."""
    found: dict[str, list[str]] = {}
    for part in names()["summary"]:
        for title, section in _ELEMENTS.items():
            head, _, inner = part["title"].partition(title)
            if not head and "NAME" not in inner:
                prefix = f"{inner[1:]}." if inner else ""
                numbers = [name for name, key in part["keys"].items() if key["form"] in ("count", "number")]
                found.setdefault(section, []).extend(f"{prefix}{name}" for name in numbers)
    return {section: tuple(measures) for section, measures in found.items()}


def whole_path(path: str) -> str:
    """A figure's path with the full name of its measure: ``flow.*.goodput_mbit_s`` for ``flow.*.goodput``.

    A path that does not end in an unambiguous short name of a measure of its section is returned unchanged.
    """
    section, dot, rest = path.partition(".")
    owner, _, last = rest.rpartition(".")
    if not dot or section not in catalogue():
        return path
    names = catalogue()[section]
    if last in {name.rpartition(".")[2] for name in names}:
        return path
    # The path may already name a part of the flow's figures.
    part = owner.rpartition(".")[2]
    inside = [name for name in names if name.startswith(f"{part}.")]
    found = meant(last, [name.removeprefix(f"{part}.") for name in inside] or names)
    whole = [".".join(filter(None, (section, owner, name))) for name in found]
    if len(whole) > 1:
        raise ambiguous(path, whole)
    return whole[0] if whole else path
