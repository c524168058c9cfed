"""The scenario of a candidate, as TOML text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.stress.bounds import ACCESS_MS, LEAST_BUFFER_PACKETS, PACKET_BYTES
from anabranch.stress.genome import Event, Genome
from anabranch.text import toml_text

OPEN_ACCESS = '"100 Mbit/s"'
CLOSED_ACCESS = '"100 bit/s"'
"""Rate of a link that holds packets: none passes until the rate is raised again."""

SETTLE_MS = 3_000
"""Time from the last change to the measurement, for repairs of losses; twice the longest interruption is added."""
WINDOW_MS = 10_000
"""Shortest measurement after the events."""
WINDOW_ROUND_TRIPS = 100
COMPANY_FACTOR = 2
"""Two flows converge slowly: their measurement is longer by this factor, and begins later by its length."""
_COMPANY_START = "0.5 s"
_INTERRUPTIONS = ("outage", "ack-gap", "ack-hold", "loss")


@dataclass(frozen=True)
class Control:
    """A congestion control.

    Attributes:
        label: Its name in sentences.
        value: The value of ``cc`` in TOML.
        classes: Controls in Python that the value names.
        stack: The stack profile.
        mark: A hash of its source, if it is the user's.
        source: ``module:Class`` of a control in Python; empty for others.
    """

    label: str
    value: str
    classes: tuple[tuple[str, type], ...] = ()
    stack: str = "linux"
    mark: str = ""
    source: str = ""


@dataclass(frozen=True)
class Span:
    """Times of a candidate in milliseconds: its last change, the start of the measurement, and its end."""

    last: int
    measured: int
    end: int

    @property
    def seconds(self) -> float:
        """Length of the measurement."""
        return (self.end - self.measured) / 1000


def span(genome: Genome, *, whole: bool) -> Span:
    """The times of a candidate; with ``whole`` the measurement is the entire run."""
    last = max((event.end for event in genome.events), default=0)
    broken = max((event.length for event in genome.events if event.kind in _INTERRUPTIONS), default=0)
    after = last + SETTLE_MS + 2 * broken
    window = max(WINDOW_MS, round(WINDOW_ROUND_TRIPS * final_rtt_ms(genome)))
    if genome.company != "alone":
        window *= COMPANY_FACTOR
        after += window
    return Span(last, 0 if whole else after, after + window)


def final_rtt_ms(genome: Genome) -> float:
    """Round-trip time of the tested flow without queues after the last change."""
    own, shared = ACCESS_MS, genome.delay
    for event in sorted(genome.events, key=lambda event: event.end):
        if event.kind == "delay":
            if event.place == "own":
                own = event.size if event.lasts else ACCESS_MS
            else:
                shared = event.size if event.lasts else genome.delay
    return 2 * (own + shared)


def final_rate(genome: Genome) -> float:
    """Rate of the bottleneck in Mbit/s after the last change."""
    rate = genome.rate
    for event in sorted(genome.events, key=lambda event: event.end):
        if event.kind == "rate":
            rate = genome.rate * event.size if event.lasts else genome.rate
    return rate


def buffer_packets(genome: Genome) -> int:
    """The bottleneck's buffer in packets."""
    bdp = genome.rate * 1e6 * 2 * (ACCESS_MS + genome.delay) / 1000 / (8 * PACKET_BYTES)
    return max(LEAST_BUFFER_PACKETS, round(genome.buffer * bdp))


def pulse_load(genome: Genome) -> float:
    """Mean load of periodic bursts, as a share of the rate."""
    return sum(event.size * event.length / max(event.period, event.length + 1) for event in genome.events
               if event.kind == "pulses")  # fmt: skip


def text(
    genome: Genome, tested: Control, reference: Control, *, whole: bool, even: bool = False, title: str = ""
) -> str:
    """The scenario.

    Args:
        genome: The candidate.
        tested: The control of the flow ``main``, and of its twin.
        reference: The control of a neighbour.
        whole: Whether the measurement is the entire run.
        even: Whether periodic bursts are replaced by the same load without bursts.
        title: The scenario's title.
    """
    times = span(genome, whole=whole)
    parts = [f"title = {toml_text.write_value(title)}\n" if title else ""]
    parts.append(f'duration = "{_s(times.end)} s"\nwarmup = "{_s(times.measured)} s"\n')
    parts.append(_links(genome))
    parts.append(_flow("main", "S", tested, "".join(_delayed(event) for event in genome.events)))
    if genome.company == "twin":
        parts.append(_flow("twin", "T", tested, f'start = "{_COMPANY_START}"\n'))
    elif genome.company == "neighbour":
        parts.append(_flow("neighbour", "T", reference, f'start = "{_COMPANY_START}"\n'))
    parts += _traffic(genome, reference, even=even)
    for time, every, key, value in _changes(genome):
        again = f'every = "{every} ms"\n' if every else ""
        parts.append(f'\n[[at]]\ntime = "{_s(time)} s"\n{again}set = {{ "{key}" = {value} }}\n')
    return "".join(parts)


def as_last(genome: Genome, tested: Control) -> tuple[str, ...]:
    """The changes of a scenario that put another control in place of the tested one."""
    flows = ("main", "twin") if genome.company == "twin" else ("main",)
    return tuple(f"flow.{flow}.cc={tested.value}" for flow in flows)


def _s(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.6f}".rstrip("0").rstrip(".")


def _flow(name: str, source: str, control: Control, more: str = "") -> str:
    return f'\n[flow.{name}]\nfrom = "{source}"\nto = "R"\ncc = {control.value}\nstack = "{control.stack}"\n{more}'


def _delayed(event: Event) -> str:
    if event.kind != "ack-ratio":
        return ""
    return f'transport = {{ delayed_ack = {{ segments = {round(event.size)}, timeout = "{event.period} ms" }} }}\n'


def _links(genome: Genome) -> str:
    kinds = set(genome.kinds)
    forward = []
    if "loss" in kinds:
        forward.append('{ kind = "bernoulli-loss", rate = 0.0 }')
    if "reordering" in kinds:
        forward.append('{ kind = "jitter", mean = "0 s", reorder = true }')
    access = [f'between = ["S", "A"]\ndelay = "{ACCESS_MS:g} ms"\n']
    ways = [f"impair = [{', '.join(forward)}]"] if forward else []
    if any(event.kind == "hold" and event.place == "own" for event in genome.events):
        ways.insert(0, f"rate = {OPEN_ACCESS}")
    if ways:
        access.append(f"forward = {{ {', '.join(ways)} }}\n")
    backward = []
    if kinds & {"ack-hold", "aggregation"}:
        backward.append(f"rate = {OPEN_ACCESS}")
    if "ack-loss" in kinds:
        backward.append('impair = [{ kind = "bernoulli-loss", rate = 0.0 }]')
    if backward:
        access.append(f"reverse = {{ {', '.join(backward)} }}\n")
    parts = [f"\n[link.access]\n{''.join(access)}"]
    others = [("T", "beside")] if genome.company != "alone" else []
    others += [("U", "udp")] if "pulses" in kinds else []
    others += [("V", "short")] if "cross" in kinds else []
    parts += [f'\n[link.{name}]\nbetween = ["{node}", "A"]\ndelay = "{ACCESS_MS:g} ms"\n' for node, name in others]
    parts.append(
        f'\n[link.bottleneck]\nbetween = ["A", "R"]\nrate = "{genome.rate:g} Mbit/s"\ndelay = "{genome.delay:g} ms"\n'
        f'queue = {{ kind = "drop-tail", limit = "{buffer_packets(genome)} packets" }}\n'
    )
    return "".join(parts)


def _traffic(genome: Genome, reference: Control, *, even: bool) -> list[str]:
    parts, short = [], 0
    for event in genome.events:
        if event.kind == "pulses":
            off = max(1, event.period - event.length)
            rate = genome.rate * event.size
            if even:
                mean = rate * event.length / (event.length + off)
                workload = f'{{ kind = "paced", rate = "{mean:.6g} Mbit/s" }}'
            else:
                workload = (
                    f'{{ kind = "on-off", rate = "{rate:.6g} Mbit/s", on = {{ kind = "fixed", time = '
                    f'"{event.length} ms" }}, off = {{ kind = "fixed", time = "{off} ms" }} }}'
                )
            parts.append(
                f'\n[flow.pulses]\nfrom = "U"\nto = "R"\nprotocol = "udp"\nstart = "{_s(event.at)} s"\n'
                f"workload = {workload}\n"
            )
        elif event.kind == "cross":
            short += 1
            times = f'start = "{_s(event.at)} s"\nstop = "{_s(event.at + event.length)} s"\n'
            parts.append(_flow(f"short{short}", "V", replace(reference, value='"reno"', classes=()), times))
    return parts


_Change = tuple[int, int, str, str]
"""Time and interval in milliseconds, key and value."""


def _changes(genome: Genome) -> list[_Change]:
    changes = [change for event in genome.events for change in _of_event(event, genome)]
    return sorted(changes, key=lambda change: change[0])


def _of_event(event: Event, genome: Genome) -> list[_Change]:
    loss = 0
    jitter = 1 if "loss" in genome.kinds else 0
    ack = "link.access.reverse"
    table: dict[str, tuple[str, str, str]] = {
        "rate": (
            "link.bottleneck.forward.rate", f'"{genome.rate * event.size:.6g} Mbit/s"', f'"{genome.rate:g} Mbit/s"',
        ),
        "loss": (f"link.access.forward.impair.{loss}.rate", f"{event.size:g}", "0.0"),
        "ack-gap": (f"{ack}.up", "false", "true"),
        "ack-hold": (f"{ack}.rate", CLOSED_ACCESS, OPEN_ACCESS),
        "ack-loss": (f"{ack}.impair.0.rate", f"{event.size:g}", "0.0"),
        "reordering": (f"link.access.forward.impair.{jitter}.mean", f'"{event.size:g} ms"', '"0 s"'),
    }  # fmt: skip
    if event.kind == "aggregation":
        closed = max(1, min(event.period - 1, round(event.period * event.size)))
        return [
            (event.at, event.period, f"{ack}.rate", CLOSED_ACCESS),
            (event.at + closed, event.period, f"{ack}.rate", OPEN_ACCESS),
        ]
    if event.kind in ("pulses", "cross", "ack-ratio"):
        return []
    link, usual = ("access", ACCESS_MS) if event.place == "own" else ("bottleneck", genome.delay)
    if event.kind == "delay":
        key, value, back = f"link.{link}.delay", f'"{event.size:g} ms"', f'"{usual:g} ms"'
    elif event.kind == "outage":
        key, value, back = f"link.{link}.up", "false", "true"
    elif event.kind == "hold":
        key, value = f"link.{link}.forward.rate", CLOSED_ACCESS
        back = OPEN_ACCESS if event.place == "own" else f'"{genome.rate:g} Mbit/s"'
    else:
        key, value, back = table[event.kind]
    first = (event.at, 0, key, value)
    return [first] if event.lasts else [first, (event.end, 0, key, back)]
