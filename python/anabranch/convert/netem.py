"""Reads ``tc qdisc`` command lines and the output of ``tc qdisc show`` as a scenario of one link.

A qdisc acts on packets that leave an interface: the first interface is the link's forward
direction, a second one its reverse direction. netem delays and loses packets before its inner
queue; a link does so after its queue. The order of a constant delay and a queue makes no
difference; the order of loss does: loss on a link does not shorten the queue.

netem's ``limit`` counts every packet that it holds: delayed packets, packets that wait for its
rate, and the backlog of a qdisc below it. A netem below tbf or htb replaces their queue: its limit
also counts the packets that wait for them (measured with Linux 6.12). ``held_limit`` of a link is
that bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

from anabranch.convert import qdiscs, tc_cake, tc_units
from anabranch.convert.content import PAPER_PACKET, Description, Notes, Side, Source, Text, path_document, per_direction
from anabranch.convert.qdiscs import Qdisc
from anabranch.convert.shell_words import Cursor, Word, commands
from anabranch.errors import nearest
from anabranch.keys.component import Component
from anabranch.text import quantity

_STATES = ("p13", "p31", "p32", "p23", "p14")

NETEM_LIMIT = 1000
"""netem's default limit, in packets (tc-netem(8))."""

IN_ORDER = 10**11
"""A rate that makes netem keep the order of packets, far above the rate of the shaper."""

HTB_LIMIT = 1000
"""Limit of a class of htb without a qdisc: the length of an Ethernet interface's queue."""

DRAWS = 100
"""Entries of a table that approximates a continuous distribution."""

_KINDS = ("netem", "htb", *qdiscs.PARAMETERS)
_STATISTICS = re.compile(
    # A line that continues the one above is part of a command.
    r"(?<!\\\n)(?<!\\\r\n)"
    r"^[ \t]+(?:Sent|backlog|rate|maxpacket|new_flows|prob|marked|early|lended|borrowed|tokens|maxpeak|pkts|bytes)"
    r"\b(?:.*[^\\\n])?$",
    re.MULTILINE,
)
_HIDDEN_DEVICES = ("lo",)


@dataclass
class _Netem:
    """The parameters of a ``netem`` qdisc."""

    at: int
    delay: Decimal = Decimal(0)
    jitter: Decimal = Decimal(0)
    distribution: str = "uniform"
    loss: Component | None = None
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float | None = None
    gap: int | None = None
    rate: int | None = None
    limit: int = NETEM_LIMIT
    is_below: bool = False
    """Whether it is below another qdisc, which then has no queue."""


@dataclass
class _Device:
    """The qdiscs of one interface."""

    at: int
    netem: _Netem | None = None
    rates: list[tuple[int, int]] = field(default_factory=list)
    """Bits per second, and the offset of each rate."""
    queue: Component | None = None
    queue_at: int = 0
    shaper: int | None = None
    """Rate of a queue that is also a shaper, in bits per second."""
    tbf: Qdisc | None = None
    has_htb: bool = False


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file holds ``tc`` commands or output of ``tc qdisc show``."""
    command = rb"tc\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?)*?(?:qdisc|class)"
    pattern = rb"(?m)^[^#\n]*\b(?:" + command + rb"|qdisc\s+\S+\s+\S+:)|^\s*(?:qdisc|class)\s+(?:add|change|replace)\s"
    return re.search(pattern, head) is not None


def read(source: Source, notes: Notes) -> Description:
    """A scenario of one link with the settings of the commands.

    Raises:
        UserError: A command is not understood; the error has line, column and the nearest valid name.
    """
    text = source.text()
    # Statistics are replaced by blanks, so that offsets stay valid.
    shown = Text(text.file, _STATISTICS.sub(lambda found: " " * len(found[0]), text.text))
    devices: dict[str, _Device] = {}
    for words in commands(shown):
        # Redirections are left out.
        kept = [word for word in words if not re.match(r"[0-9]?>", word.text)]
        if kept:
            _command(shown, kept, devices, notes)
    return Description(path_document(f"A link from {Path(source.name).name}", _link(shown, devices, notes)))


def _link(text: Text, devices: dict[str, _Device], notes: Notes) -> Side:
    shaped = {
        name: device for name, device in devices.items() if device.netem or device.rates or device.shaper
    } or devices
    if not shaped:
        raise text.error(
            len(text.text), "there is no qdisc", "a line such as `tc qdisc add dev eth0 root netem delay 20ms`"
        )
    if len(shaped) > 2:
        third = list(shaped.values())[2]
        raise text.error(
            third.at,
            f"a third interface; a link has two directions, and {', '.join(shaped)} have qdiscs",
            "leave the lines of two",
        )
    for name in devices.keys() - shaped.keys():
        notes.lost(f"the queue of {name}, which neither delays nor shapes", text.where(devices[name].at))
    sides = {name: _direction(text, device, notes) for name, device in shaped.items()}
    if len(sides) == 1:
        ((name, side),) = sides.items()
        return per_direction({}, side, notes) if "reverse" in name.lower() else per_direction(side, {}, notes)
    first, second = sides.values()
    if "reverse" in next(iter(sides)).lower():
        first, second = second, first
    return per_direction(first, second, notes)


_VERBS = ("add", "change", "replace", "link")
_OTHER_VERBS = ("del", "delete", "show", "list", "ls")
_WITH_ARGUMENT = ("-n", "-net", "-netns", "-b", "-batch", "-cf", "-conf")
"""Options of ``tc`` that take a value."""
_SHELL = ("sudo", "if", "then", "else", "do", "while", "!", "{", "(", "time")
"""Words before a command that do not change it."""
_OBJECTS = ("qdisc", "class", "filter")
_PLACING = ("dev", "root", "parent", "handle", "ingress", "clsact", "refcnt", "offloaded", "index")
"""Words beside the name of a qdisc that give its position."""
_WITH_VALUE = ("dev", "parent", "handle", "refcnt", "index")


def _command(text: Text, words: list[Word], devices: dict[str, _Device], notes: Notes) -> None:
    """Read one command of a script or of a ``tc -batch`` file, or one line of ``tc qdisc show``."""
    is_batch = words[0].text in _OBJECTS and len(words) > 1 and words[1].text in (*_VERBS, *_OTHER_VERBS)
    if is_batch:
        words = [Word("tc", words[0].at), *words]
    elif words[0].text == "qdisc":
        _shown(Cursor(text, words[1:] or words), devices, notes)
        return
    while words and words[0].text in _SHELL:
        words = words[1:]
    start = next((n for n, word in enumerate(words) if word.text.rsplit("/", 1)[-1] == "tc"), None)
    if start is None or words[0].text in ("echo", "printf", "command", "which"):
        return
    # Options of tc come before its object; later a minus begins a number, such as the overhead of
    # netem's rate.
    options = start + 1
    while options < len(words) and words[options].text.startswith("-"):
        options += 2 if words[options].text in _WITH_ARGUMENT else 1
    rest = words[options:]
    # `ip netns exec NAME tc …` and `tc -n NAME …`: the same name there means another interface.
    namespace = [word.text for word in words[start + 1 : options] if not word.text.startswith("-")]
    place = " ".join([*(word.text for word in words[:start]), *namespace])
    if len(rest) < 2:
        raise text.error(words[start].at, "a tc command without an object; `tc qdisc add dev …` was expected")
    subject, verb, arguments = rest[0], rest[1], rest[2:]
    if subject.text not in _OBJECTS:
        raise text.error(subject.at, f"{subject.text!r} is not an object of tc", nearest(subject.text, _OBJECTS))
    if verb.text in _OTHER_VERBS:
        return
    if subject.text == "filter":
        notes.lost("a tc filter: all packets of an interface take its qdiscs", text.where(subject.at))
        return
    if verb.text not in _VERBS:
        hint = nearest(verb.text, [*_VERBS, *_OTHER_VERBS])
        raise text.error(verb.at, f"{verb.text!r} is not a verb of tc {subject.text}", hint)
    if not arguments:
        raise text.error(verb.at, f"nothing follows {verb.text!r}; `dev NAME` was expected")
    (_given if subject.text == "qdisc" else _class)(Cursor(text, arguments), place, devices, notes)


def _placed(cursor: Cursor) -> tuple[str | None, bool]:
    """The interface among the words for a qdisc's position, and whether the qdisc is below another.

    The interface is ``None`` if the words have none, and empty for an ingress qdisc.
    """
    device: str | None = None
    is_ingress = is_below = False
    while cursor.peek() in _PLACING:
        word = cursor.take("a word")
        is_below |= word.text == "parent"
        is_ingress |= word.text in ("ingress", "clsact") or (word.text == "parent" and cursor.peek() == "ffff:fff1")
        if word.text in _WITH_VALUE:
            value = cursor.take("an interface" if word.text == "dev" else "a handle").text
            device = value if word.text == "dev" else device
    return "" if is_ingress else device, is_below


def _shown(cursor: Cursor, devices: dict[str, _Device], notes: Notes) -> None:
    """Read a line of ``tc qdisc show``, which begins with the kind and the handle."""
    kind = cursor.take("a qdisc")
    if not cursor.is_done:
        cursor.take("a handle")
    device, is_below = _placed(cursor)
    if device in ("", *_HIDDEN_DEVICES):
        return
    if kind.text not in _KINDS:
        notes.lost(f"the qdisc {kind.text}", cursor.text.where(kind.at))
        return
    if device is None:
        raise cursor.text.error(kind.at, f"no interface for {kind.text}; `dev NAME` was expected after it")
    _apply(cursor, (kind, is_below), devices.setdefault(device, _Device(kind.at)), notes)


def _given(cursor: Cursor, place: str, devices: dict[str, _Device], notes: Notes) -> None:
    """Read ``tc qdisc add …``, where the kind follows the position."""
    device, is_below = _placed(cursor)
    if device == "":
        return
    kind = cursor.take("a qdisc (netem, tbf, fq_codel, …)")
    if kind.text not in _KINDS:
        raise cursor.unknown(kind, "a qdisc that a scenario has", _KINDS)
    if device is None:
        raise cursor.text.error(kind.at, f"no interface for {kind.text}; `dev NAME` was expected before it")
    _apply(cursor, (kind, is_below), devices.setdefault(f"{place} {device}".strip(), _Device(kind.at)), notes)


def _apply(cursor: Cursor, placed: tuple[Word, bool], device: _Device, notes: Notes) -> None:
    """Apply one qdisc, given with whether it is below another."""
    text, (kind, is_below) = cursor.text, placed
    if kind.text == "netem":
        if device.netem is not None:
            notes.lost("an earlier netem of the same interface", text.where(device.netem.at))
        device.netem = _read_netem(cursor, kind, notes)
        device.netem.is_below = is_below
        return
    if kind.text == "htb":
        device.has_htb = True
        cursor.rest()
        return
    found = qdiscs.read(cursor, kind)
    if kind.text == "tbf":
        device.tbf = found
        device.rates.append((_tbf_rate(found, text, notes), kind.at))
        return
    device.shaper = tc_cake.bandwidth(found.given) if kind.text == "cake" else None
    device.queue, device.queue_at = qdiscs.queue(found, text, notes), kind.at


_HTB_LOST = {
    "burst": "a link has no token bucket", "cburst": "a link has no token bucket",
    **dict.fromkeys(("mpu", "overhead", "linklayer"), "a packet takes its own bytes"),
}  # fmt: skip


def _class(cursor: Cursor, place: str, devices: dict[str, _Device], notes: Notes) -> None:
    """Read a class of htb, whose rate is the interface's."""
    device, rate = None, None
    while not cursor.is_done:
        word = cursor.take("a word")
        if word.text == "dev":
            device = cursor.take("an interface").text
        elif word.text in ("rate", "ceil"):
            given = cursor.take("a rate")
            # A class without siblings gets its ceiling.
            rate = (tc_units.rate(cursor.text, given), given.at)
        elif word.text in (*_HTB_LOST, "parent", "classid", "prio", "quantum", "mtu"):
            cursor.take("a value")
            if word.text in _HTB_LOST:
                notes.lost(f"{word.text} of htb: {_HTB_LOST[word.text]}", cursor.text.where(word.at))
    if device is None or rate is None:
        return
    devices.setdefault(f"{place} {device}".strip(), _Device(rate[1])).rates.append(rate)


def _bucket(tbf: Qdisc) -> str | None:
    """The parameter that gives the size of tbf's token bucket."""
    return next((name for name in ("burst", "buffer", "maxburst") if name in tbf.given), None)


def _tbf_rate(tbf: Qdisc, text: Text, notes: Notes) -> int:
    given = tbf.given
    if "rate" not in given:
        raise text.error(tbf.at, "tbf has no rate; `rate RATE` was expected")
    rate: int = given["rate"]
    bucket = _bucket(tbf)
    # The kernel's timer needs a bucket of this size for the rate (tc-tbf(8): 10 kbytes at 10
    # Mbit/s), so it is no separate burst.
    if bucket is not None and given[bucket] > max(rate // 800, 2 * PAPER_PACKET):
        notes.lost(f"{bucket} of tbf: a link has no token bucket", text.where(tbf.places[bucket]))
    for name in ("peakrate", "mpu", "overhead", "linklayer"):
        if name in given:
            notes.lost(f"{name} of tbf", text.where(tbf.places[name]))
    return rate


_Option = Callable[[Cursor, Word, _Netem, Notes], None]


def _read_netem(cursor: Cursor, kind: Word, notes: Notes) -> _Netem:
    netem = _Netem(kind.at)
    reorder_at = kind.at
    while not cursor.is_done:
        word = cursor.take("a parameter of netem")
        option = OPTIONS.get(word.text)
        if option is None:
            raise cursor.unknown(word, "a parameter of netem", OPTIONS)
        if word.text in ("reorder", "gap"):
            reorder_at = word.at
        option(cursor, word, netem, notes)
    if (netem.reorder or netem.gap) and not netem.delay:
        raise cursor.text.error(
            reorder_at, "reordering without a delay has no effect; `delay TIME` was expected as well"
        )
    if netem.gap and netem.reorder is None:
        raise cursor.text.error(reorder_at, "tc refuses a gap without `reorder PERCENT`")
    return netem


def _delay(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    netem.delay = tc_units.time(cursor.text, cursor.take("a time"))
    if tc_units.is_number(cursor.peek()):
        netem.jitter = tc_units.time(cursor.text, cursor.take("a time"))
        _correlation(cursor, "the delay", notes)


def _correlation(cursor: Cursor, of: str, notes: Notes) -> None:
    if tc_units.is_number(cursor.peek()):
        word = cursor.take("a percentage")
        if tc_units.ratio(cursor.text, word):
            notes.lost(f"the correlation of {of}: draws are independent", cursor.text.where(word.at))


def _distribution(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    word = cursor.take("a distribution")
    if word.text not in ("uniform", "normal", "pareto"):
        stand_in = "pareto" if word.text == "paretonormal" else "normal"
        notes.lost(f"the distribution {word.text}; read as {stand_in}", cursor.text.where(word.at))
        netem.distribution = stand_in
    else:
        netem.distribution = word.text


def _loss(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    model = cursor.peek()
    if model == "gemodel":
        cursor.take("a model")
        netem.loss = _gemodel(_percentages(cursor, ["p", "r", "1-h", "1-k"]))
    elif model == "state":
        cursor.take("a model")
        netem.loss = _states(_percentages(cursor, list(_STATES)))
    else:
        if model == "random":
            cursor.take("a model")
        rate = tc_units.ratio(cursor.text, cursor.take("a percentage"))
        netem.loss = {"kind": "bernoulli-loss", "rate": rate} if rate else None
        _correlation(cursor, "losses", notes)


def _percentages(cursor: Cursor, names: list[str]) -> list[float | None]:
    """The first value and at most one for each further name; ``tc qdisc show`` also writes the names."""
    found: list[float | None] = []
    for name in names:
        if cursor.peek() == name:
            cursor.take("a name")
        elif found and not tc_units.is_number(cursor.peek()):
            break
        found.append(tc_units.ratio(cursor.text, cursor.take("a percentage")))
    return found + [None] * (len(names) - len(found))


def _gemodel(given: list[float | None]) -> Component:
    p, r, bad, good = given[0] or 0.0, *given[1:]
    found: Component = {"kind": "gilbert-elliott", "p": p, "r": _complement(p) if r is None else r}
    if bad is not None and bad != 1:
        found["h"] = _complement(bad)
    if good:
        found["k"] = _complement(good)
    return found


def _states(given: list[float | None]) -> Component:
    return {"kind": "four-state-loss", **{n: v for n, v in zip(_STATES, given, strict=True) if v is not None}}


def _complement(ratio: float) -> float:
    return float(1 - Decimal(repr(ratio)))


def _duplicate(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    netem.duplicate = tc_units.ratio(cursor.text, cursor.take("a percentage"))
    _correlation(cursor, "duplicates", notes)


def _corrupt(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    netem.corrupt = tc_units.ratio(cursor.text, cursor.take("a percentage"))
    _correlation(cursor, "corruption", notes)


def _reorder(cursor: Cursor, _word: Word, netem: _Netem, notes: Notes) -> None:
    netem.reorder = tc_units.ratio(cursor.text, cursor.take("a percentage"))
    _correlation(cursor, "reordering", notes)
    # `tc qdisc show` writes the gap after the percentage.


def _gap(cursor: Cursor, word: Word, netem: _Netem, notes: Notes) -> None:
    netem.gap = tc_units.integer(cursor.text, cursor.take("a number"))
    if netem.gap > 1:
        notes.lost("the gap of reordering: the same share of packets overtakes, at random", cursor.text.where(word.at))


def _rate(cursor: Cursor, word: Word, netem: _Netem, notes: Notes) -> None:
    netem.rate = tc_units.rate(cursor.text, cursor.take("a rate"))
    if _is_overhead(cursor.peek()):
        notes.lost("packet and cell overhead of netem's rate", cursor.text.where(word.at))
    while _is_overhead(cursor.peek()):
        cursor.take("a number")


def _is_overhead(word: str | None) -> bool:
    return re.fullmatch(r"-?[0-9]+", word or "") is not None or word in ("packetoverhead", "cellsize", "celloverhead")


def _limit(cursor: Cursor, _word: Word, netem: _Netem, _notes: Notes) -> None:
    given = cursor.take("a number of packets")
    netem.limit = tc_units.packets(cursor.text, given)
    if netem.limit == 0:
        raise cursor.text.error(given.at, "netem with a limit of 0 drops every packet; 1 or more was expected")


def _slot(cursor: Cursor, word: Word, _netem: _Netem, notes: Notes) -> None:
    notes.lost("slots of netem", cursor.text.where(word.at))
    while tc_units.is_number(cursor.peek()) or cursor.peek() in ("distribution", "packets", "bytes"):
        if cursor.take("a value").text == "distribution":
            cursor.take("a distribution")


def _seed(cursor: Cursor, _word: Word, _netem: _Netem, _notes: Notes) -> None:
    cursor.take("a seed")


def _ecn(cursor: Cursor, word: Word, _netem: _Netem, notes: Notes) -> None:
    notes.lost("ecn of netem: a loss is a loss", cursor.text.where(word.at))


OPTIONS: dict[str, _Option] = {
    "limit": _limit, "delay": _delay, "latency": _delay, "distribution": _distribution, "loss": _loss, "drop": _loss,
    "duplicate": _duplicate, "corrupt": _corrupt, "reorder": _reorder, "gap": _gap, "rate": _rate, "slot": _slot,
    "seed": _seed, "ecn": _ecn,
}  # fmt: skip
"""The parameters of netem."""


def _direction(text: Text, device: _Device, notes: Notes) -> Side:
    """The keys of one direction of a link."""
    netem = device.netem
    if netem is not None and netem.rate is not None:
        device.rates.append((netem.rate, netem.at))
    rate = min((rate for rate, _ in device.rates), default=None)
    for other, at in device.rates:
        if other not in (rate, IN_ORDER):
            notes.lost(f"the rate {quantity.rate(other)} beside a lower one", text.where(at))
    side: Side = {}
    if rate is not None:
        side["rate"] = quantity.rate(rate)
    jitter: Component | None = None
    if netem is not None:
        delay, jitter = _delays(netem, notes, text)
        if delay:
            side["delay"] = quantity.duration(delay)
    if netem is not None and _holds(netem, rate):
        side.update(_limits(text, (device, netem), rate, notes))
    elif (queue := _queue(text, device)) is not None:
        side["queue"] = queue
    if netem is not None and netem.limit != NETEM_LIMIT and not _holds(netem, rate):
        notes.remarks.append(f"netem's limit of {netem.limit} packets never applies: no delay or rate holds packets")
    impair = _impairments(netem, jitter) if netem is not None else []
    if impair:
        side["impair"] = impair
    return side


def _impairments(netem: _Netem, jitter: Component | None) -> list[Component]:
    found = [netem.loss] if netem.loss else []
    if netem.duplicate:
        found.append({"kind": "duplicate", "rate": netem.duplicate})
    if netem.corrupt:
        found.append({"kind": "corrupt", "rate": netem.corrupt})
    return [*found, jitter] if jitter else found


def _holds(netem: _Netem, rate: int | None) -> bool:
    """Whether packets stay in netem for any time."""
    return bool(netem.delay or netem.jitter) or rate is not None


def _limits(text: Text, parts: tuple[_Device, _Netem], rate: int | None, notes: Notes) -> Side:
    """The limits of a direction with a netem: of its queue, and of all packets that it holds."""
    device, netem = parts
    limit = f"{netem.limit} packets" if netem.limit < qdiscs.UNLIMITED else "unlimited"
    shapes = device.shaper is not None and (rate is None or device.shaper <= rate)
    if netem.rate is None or netem.rate != rate or shapes:
        queue = _queue(text, device)
        found: Side = {"queue": queue} if queue is not None else {}
        if limit != "unlimited":
            found["held_limit"] = limit
        return found
    # Packets wait in netem for its rate, so a qdisc below it never has a queue.
    if device.queue is not None:
        notes.lost("a qdisc below netem's rate, which never has a queue", text.where(device.queue_at))
    if limit == "unlimited":
        return {}
    if netem.delay or netem.jitter:
        return {"held_limit": limit}
    # Nothing is delayed: all packets wait except the one in transmission.
    return {"queue": qdiscs.drop_tail(netem.limit - 1, "packets")}


def _queue(text: Text, device: _Device) -> Component | None:
    """The queue before the link's rate."""
    of_tbf = _tbf_queue(device.tbf, text) if device.tbf is not None else None
    if device.queue is not None:
        return device.queue
    if device.netem is not None and device.netem.is_below:
        return None
    if of_tbf is not None:
        return of_tbf
    return qdiscs.drop_tail(HTB_LIMIT, "packets") if device.has_htb else None


def _tbf_queue(tbf: Qdisc, text: Text) -> Component:
    given = tbf.given
    if "limit" in given:
        return qdiscs.drop_tail(given["limit"], "bytes")
    name = next((name for name in ("latency", "lat") if name in given), None)
    if name is None:
        raise text.error(tbf.at, "tbf has no limit; `limit BYTES` or `latency TIME` was expected")
    # tc adds the bucket to the bytes that wait for this time.
    bucket = _bucket(tbf)
    burst = given[bucket] if bucket is not None else 0
    return qdiscs.drop_tail(max(int(given[name] * given["rate"] / 8) + burst, PAPER_PACKET), "bytes")


def _delays(netem: _Netem, notes: Notes, text: Text) -> tuple[Decimal, Component | None]:
    """The link's delay, and its jitter."""
    ahead = _share_ahead(netem)
    if netem.reorder == 0 and not netem.gap:
        ahead = Fraction(0)
    if ahead:
        share = ahead.limit_denominator(1000)
        if abs(share - ahead) > ahead / 100:
            notes.lost(f"reordering of {float(ahead):.3g} of the packets; rounded to {share}", text.where(netem.at))
        entries = _quantiles(netem) if netem.jitter else [netem.delay]
        late = share.denominator - share.numerator
        # The quantiles in equal steps, so that each is drawn about equally often.
        delays = [entries[number * len(entries) // late] for number in range(late)]
        table = [Decimal(0)] * share.numerator + delays
        return Decimal(0), _table(table, reorder=True)
    if not netem.jitter:
        return netem.delay, None
    return _jitter(netem)


def _share_ahead(netem: _Netem) -> Fraction:
    """The share of packets sent at once: after such a packet, ``gap`` − 1 are delayed, and then each with 1 − P."""
    if netem.reorder is None and netem.gap is None:
        return Fraction(0)
    chance = Fraction(1 if netem.reorder is None else Decimal(repr(netem.reorder)))
    gap = netem.gap or 1
    return 1 / (gap - 1 + 1 / chance) if chance else Fraction(0)


def _jitter(netem: _Netem) -> tuple[Decimal, Component]:
    mean, spread = netem.delay, netem.jitter
    # netem with a rate keeps the order.
    order = {"reorder": True} if netem.rate is None else {}
    if netem.distribution == "normal" and mean >= 3 * spread:
        return mean - 3 * spread, {
            "kind": "jitter", "distribution": "normal", "mean": quantity.duration(3 * spread),
            "deviation": quantity.duration(spread), **order,
        }  # fmt: skip
    if netem.distribution == "pareto" and mean >= 2 * spread:
        # tc's table is (X − 1.5) · 4/3 for X of Pareto's law with exponent 3: from −2/3 on, and of mean 0.
        return mean - 2 * spread, {
            "kind": "jitter", "distribution": "pareto", "mean": quantity.duration(2 * spread), "shape": 3.0, **order,
        }  # fmt: skip
    least = max(mean - spread, Decimal(0)) if netem.distribution == "uniform" else Decimal(0)
    return least, _table([value - least for value in _quantiles(netem)], reorder=netem.rate is None)


def _quantiles(netem: _Netem) -> list[Decimal]:
    """The delays as a table; packets with a negative delay are sent at once, as by netem."""
    found = []
    for number in range(DRAWS):
        share = (number + 0.5) / DRAWS
        if netem.distribution == "normal":
            deviation = NormalDist().inv_cdf(share)
        elif netem.distribution == "pareto":
            deviation = min(((1 - share) ** (-1 / 3) - 1.5) * 4 / 3, 4.0)
        else:
            deviation = 2 * share - 1
        found.append(max(netem.delay + netem.jitter * Decimal(repr(round(deviation, 9))), Decimal(0)))
    return found


def _table(delays: list[Decimal], *, reorder: bool) -> Component:
    order = {"reorder": True} if reorder else {}
    return {"kind": "jitter", "distribution": "table", "table": [quantity.duration(d) for d in delays], **order}
