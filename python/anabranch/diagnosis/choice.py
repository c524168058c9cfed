"""Choice of a diagnosis' connections by a user's complaint: a host, a port, a time."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from anabranch.diagnosis.diagnosis import Diagnosis, directions
from anabranch.diagnosis.document import Connection, Stall
from anabranch.errors import UserError
from anabranch.text.spoken import argument

NEAR_S = 1.0
"""A clock is read to a second: connections this close to a time are chosen."""
AROUND_S = 5.0
"""Pauses this close to the time are named."""
MOST_NAMED = 5
MOST_SLOWEST = 10
"""Connections that ``slowest`` chooses."""

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_EXAMPLES = "for example 14:03:20, 2026-11-28T14:03:20, or 12.5 for seconds from the start of the capture"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Choice:
    """Conditions on a connection, all of which must hold. Two hosts are its two ends."""

    hosts: tuple[str, ...] = ()
    port: int | None = None
    around: str | None = None
    slowest: bool = False

    @property
    def is_empty(self) -> bool:
        """Every connection is chosen."""
        return not self.hosts and self.port is None and self.around is None and not self.slowest


def choose(document: Diagnosis, choice: Choice) -> Diagnosis:
    """The diagnosis with the chosen connections alone.

    Raises:
        UserError: A value is malformed, or no connection fits.
    """
    networks = [_network(host) for host in choice.hosts]
    if choice.port is not None and not 0 < choice.port < 65536:
        raise UserError(f"{argument('port', choice.port)}: expected a port from 1 to 65535")
    if len(networks) > 2:
        raise UserError(f"{argument('host')}: expected one host or two: a connection has two ends")
    moment = time_of(document, choice.around)
    found = document.content["connections"]
    if networks:
        before, found = found, [one for one in found if _is_between(one, networks)]
        if not found:
            raise _none(document, "host", " and ".join(choice.hosts), _hosts(before))
    if choice.port is not None:
        before, found = found, [one for one in found if choice.port in map(_port, (one["a"], one["b"]))]
        if not found:
            raise _none(document, "port", choice.port, _ports(before))
    if moment is not None:
        before, found = found, [one for one in found if _distance_s(one, moment) <= NEAR_S]
        if not found:
            raise _none(document, "around", choice.around, _nearest(before, moment))
    if choice.slowest:
        found = slowest(found)
    omitted = dict.fromkeys(document["omitted"], 0)
    chosen = {**document, "connections": found}
    # The omitted connections may not fit.
    return Diagnosis(chosen if choice.is_empty else {**chosen, "omitted": omitted})


def slowest(connections: Sequence[Connection]) -> list[Connection]:
    """The connections that lost most time to limits, recoveries, round trips and late answers; then the longest."""
    return sorted(connections, key=lambda one: (-one["lost_s"], -one["duration_s"], one["id"]))[:MOST_SLOWEST]


def time_of(document: Diagnosis, text: str | None) -> float | None:
    """The time that a text names, in seconds since 1970; none without a text.

    A clock time is one of this machine's time zone, on the day of the capture.

    Raises:
        UserError: It is no time, or on several days of the capture.
    """
    if text is None:
        return None
    start = document["start_s"] or 0.0
    if _SECONDS.fullmatch(text):
        return float(start) + float(text)
    if clock := _CLOCK.fullmatch(text):
        return _on_its_day(document, text, float(clock[1]) * 3600 + float(clock[2]) * 60 + float(clock[3] or 0))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{argument('around', text)}: expected a time", hint=_EXAMPLES) from None
    if len(text) <= len("2026-11-28"):
        raise UserError(f"{argument('around', text)}: expected a time of the day as well", hint=_EXAMPLES)
    return moment.timestamp()


def _on_its_day(document: Diagnosis, text: str, since_midnight_s: float) -> float:
    if since_midnight_s >= 24 * 3600 or int(text.split(":")[1]) > 59 or not _is_minute(text):
        raise UserError(f"{argument('around', text)}: expected a time of the day", hint=_EXAMPLES)
    starts = [one["start_s"] for one in document["connections"]]
    ends = [one["start_s"] + one["duration_s"] for one in document["connections"]]
    first = datetime.fromtimestamp(min(starts, default=0.0)).astimezone()
    last = max(ends, default=0.0)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    found = []
    for day in range((datetime.fromtimestamp(last) - midnight).days + 1):
        moment = (midnight + timedelta(days=day, seconds=since_midnight_s)).timestamp()
        if first.timestamp() - NEAR_S <= moment <= last + NEAR_S:
            found.append(moment)
    if len(found) > 1:
        first_day = datetime.fromtimestamp(found[0]).isoformat(timespec="seconds")
        raise UserError(
            f"{argument('around', text)}: the capture has several such times", hint=f"for example {first_day}"
        )
    return found[0] if found else (midnight + timedelta(seconds=since_midnight_s)).timestamp()


def _is_minute(text: str) -> bool:
    parts = text.split(":")
    return len(parts) < 3 or float(parts[2]) < 60


def pause_around(connection: Connection, moment: float) -> Stall | None:
    """The longest pause of a connection near a time."""
    pauses = [
        stall
        for _, way in directions(connection)
        for stall in way["stalls"]
        if stall["start_s"] - AROUND_S <= moment <= stall["start_s"] + stall["duration_s"] + AROUND_S
    ]
    return max(pauses, key=lambda stall: float(stall["duration_s"]), default=None)


def _network(text: str) -> Network:
    """An address, also in brackets, or a network."""
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        raise UserError(
            f"{argument('host', text)}: expected an address or a network, as the capture has them",
            hint="for example 192.0.2.7, 2001:db8::7 or 192.0.2.0/24; names are not resolved",
        ) from None


def _is_in(end: str, network: Network) -> bool:
    """Whether an end is in a network. The ends of a qlog without addresses are in none."""
    try:
        return ipaddress.ip_address(end.rpartition(":")[0].strip("[]").partition("%")[0]) in network
    except ValueError:
        return False


def _port(end: str) -> int | None:
    port = end.rpartition(":")[2]
    return int(port) if port.isdecimal() else None


def _is_between(connection: Connection, networks: Sequence[Network]) -> bool:
    one, other = connection["a"], connection["b"]
    if len(networks) == 1:
        return _is_in(one, networks[0]) or _is_in(other, networks[0])
    first, second = networks
    return (_is_in(one, first) and _is_in(other, second)) or (_is_in(one, second) and _is_in(other, first))


def _distance_s(connection: Connection, moment: float) -> float:
    """Seconds between a time and a connection; 0 within it."""
    start = float(connection["start_s"])
    return max(start - moment, moment - start - float(connection["duration_s"]), 0.0)


def _none(document: Diagnosis, name: str, value: object, hint: str) -> UserError:
    return UserError(f"{argument(name, value)}: {document['file']} has no such connection", hint=hint)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"there are: {', '.join(names[:MOST_NAMED]) or 'none'}{more}"


def _hosts(connections: Sequence[Connection]) -> str:
    ends = [one[end] for one in connections for end in ("b", "a")]
    return _listed(list(dict.fromkeys(end.rpartition(":")[0] or end for end in ends)))


def _ports(connections: Sequence[Connection]) -> str:
    """The ports of the hosts that were called, listed first because they are fewer."""
    ports = [_port(one[end]) for end in ("b", "a") for one in connections]
    return _listed([str(port) for port in dict.fromkeys(ports) if port is not None])


def _nearest(connections: Sequence[Connection], moment: float) -> str:
    if not connections:
        return _listed([])
    near = min(connections, key=lambda one: _distance_s(one, moment))
    times = (near["start_s"], near["start_s"] + near["duration_s"])
    start, end = (datetime.fromtimestamp(time).isoformat(sep=" ", timespec="seconds") for time in times)
    return f"the nearest is connection {near['id']}, from {start} to {end}"
