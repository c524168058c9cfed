"""Congestion controls with planted faults, and changes that are none, for ``validation/stress/mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from anabranch import CongestionControl
from anabranch.control import Ack, Congestion, Rto
from anabranch.text.toml_text import write_value

HERE = Path(__file__).parent


class PlainReno(CongestionControl):
    """Reno with byte counting (RFC 5681, RFC 3465), without a fault."""

    name: ClassVar[str] = "plain-reno"

    def on_ack(self, ack: Ack) -> None:
        """Slow start, then a segment per round trip."""
        if ack.in_recovery or not ack.cwnd_limited:
            return
        slow = self.ssthresh is None or self.cwnd < self.ssthresh
        self.cwnd += ack.acked if slow else self.smss * ack.acked / self.cwnd

    def on_congestion(self, event: Congestion) -> None:  # noqa: ARG002
        """Halve the window."""
        self.ssthresh = self.cwnd = max(self.cwnd / 2, 2 * self.smss)

    def on_rto(self, event: Rto) -> None:
        """Begin again with one segment."""
        if event.consecutive == 1:
            self.ssthresh = max(self.cwnd / 2, 2 * self.smss)
        self.cwnd = self.smss


class WrongBeta(PlainReno):
    """A loss leaves 95 % of the window."""

    name = "wrong-beta"

    def on_congestion(self, event: Congestion) -> None:  # noqa: ARG002
        """Reduce by 5 %."""
        self.ssthresh = self.cwnd = max(0.95 * self.cwnd, 2 * self.smss)


class Latched(PlainReno):
    """After 300 ms without an acknowledgment the window is two segments for ever."""

    name = "latched"
    last: float = 0.0
    has_gap: bool = False

    def on_ack(self, ack: Ack) -> None:
        """Detect the gap."""
        super().on_ack(ack)
        self.has_gap = self.has_gap or (self.last > 0 and ack.now_s - self.last > 0.3)
        self.last = ack.now_s
        if self.has_gap:
            self.cwnd = 2 * self.smss


@dataclass(frozen=True)
class Fault:
    """A mutant.

    Attributes:
        what: The fault, in words.
        control: The mutant, as on the command line.
        against: The control without the fault.
        classes: Controls in Python.
    """

    what: str
    control: str
    against: str
    classes: tuple[type[CongestionControl], ...] = ()


def compiled(source: str, definition: str, folder: Path) -> str:
    """A control of a C file with a definition, as on the command line.

    Args:
        source: Name of the file, beside this one.
        definition: The definition, such as ``FAULT 3``.
        folder: A directory for the file that is compiled.
    """
    path = folder / f"{definition.replace(' ', '-').lower()}-{source}"
    path.write_text(f"#define {definition}\n{(HERE / source).read_text('utf-8')}", "utf-8")
    return f'{{ kind = "bpf", file = {write_value(str(path))} }}'


def _table(kind: str) -> Callable[[str, str], Fault]:
    return lambda parameters, what: Fault(f"{kind}: {what}", f'{{ kind = "{kind}", {parameters} }}', kind)


_CUBIC, _RENO, _BBR, _VEGAS = map(_table, ("cubic", "reno", "bbr", "vegas"))
_BBR3, _COMPOUND, _BIC, _HTCP = map(_table, ("bbr3", "compound", "bic", "htcp"))

_PARAMETERS = (
    _CUBIC("beta = 0.99", "a loss leaves 99 % of the window"),
    _CUBIC("c = 100.0", "C is 250 times too large"),
    _CUBIC('hystart_delay_min = "0 s", hystart_delay_share = 0.0, hystart_delay_max = "0 s"', "HyStart exits at once"),
    _RENO("extra_eighth = true", "an eighth of a segment more per acknowledgment (RFC 2525)"),
    _RENO('avoidance = "acks", slow_start_limit = "1 packet"', "counts acknowledgments"),
    _BBR("cwnd_gain = 0.5", "half a bandwidth-delay product in flight"),
    _BBR("probe_up_gain = 1.0", "never probes for bandwidth"),
    _BBR("probe_down_gain = 1.25", "never drains its probe"),
    _BBR("bw_window_rounds = 1000", "the largest bandwidth hardly expires"),
    _BBR("bw_window_rounds = 1", "the largest bandwidth expires after a round trip"),
    _BBR('min_rtt_window = "100000 s"', "the smallest round-trip time never expires"),
    _BBR("full_bw_rounds = 1000", "never leaves Startup"),
    _BBR("high_gain = 1.05", "Startup hardly grows"),
    _BBR('probe_rtt_duration = "8 s"', "ProbeRTT lasts 8 s"),
    _BBR('min_window = "500 packets"', "the smallest window is 500 segments"),
    _BBR3('min_rtt_window = "100000 s", probe_rtt_interval = "50000 s"', "the smallest round-trip time never expires"),
    _VEGAS('alpha = "60 packets", beta = "80 packets"', "keeps 60 packets in the queue"),
    _VEGAS('gamma = "10000 packets"', "never leaves slow start by delay"),
    _COMPOUND("beta = 0.99", "a loss leaves 99 % of the window"),
    _BIC("beta = 0.99", "a loss leaves 99 % of the window"),
    _HTCP('delta_l = "0 s"', "fast growth from the start"),
)
_RENO_FAULTS = (
    "a loss has no effect", "a loss leaves 95 % of the window", "a loss resets ssthresh", "slow start never ends",
    "a loss leaves two segments", "a loss leaves an eighth", "no growth in congestion avoidance",
    "ten segments per round trip", "counts acknowledgments", "a timeout leaves a threshold of two segments",
    "never above four segments after a loss", "never above four segments after a timeout",
    "never above ten segments", "four segments at 2.5 times the minimum round-trip time, which never expires",
    "halves at an acknowledgment of nine segments", "an undone reduction leaves one segment",
)  # fmt: skip
DRAFT_ROUNDS = '{ kind = "bbr", rounds = "acknowledgments" }'
"""BBRv1 to the letter of draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1: every acknowledgment updates rounds and
bandwidth, also one whose rate sample is not reliable."""
_LITERAL = "CUBIC of RFC 9438 §4.4 to the letter: growth per acknowledgment"


def faults(folder: Path) -> list[Fault]:
    """The 40 planted faults; ``folder`` receives the C files of some."""
    plain = compiled("reno-faults.bpf.c", "FAULT 0", folder)
    made = [*_PARAMETERS]
    for number, what in enumerate(_RENO_FAULTS, 1):
        made.append(Fault(f"reno in C: {what}", compiled("reno-faults.bpf.c", f"FAULT {number}", folder), plain))
    made.append(literal(folder))
    made += (
        Fault(f"reno in Python: {str(kind.__doc__).rstrip('.')}", kind.name, "plain-reno", (kind, PlainReno))
        for kind in (WrongBeta, Latched)
    )
    return made


def literal(folder: Path) -> Fault:
    """CUBIC whose growth depends on the number of acknowledgments."""
    one, other = (compiled("literal-cubic.bpf.c", f"COUNTS_SEGMENTS {k}", folder) for k in (0, 1))
    return Fault(_LITERAL, one, other)


SHAM = (
    Fault("CUBIC with beta 0.701", '{ kind = "cubic", beta = 0.701 }', "cubic"),
    Fault("CUBIC with C 0.401", '{ kind = "cubic", c = 0.401 }', "cubic"),
    Fault("BBR with a high gain of 2.89", '{ kind = "bbr", high_gain = 2.89 }', "bbr"),
    Fault("Vegas with beta_loss 0.501", '{ kind = "vegas", beta_loss = 0.501 }', "vegas"),
)
"""Changes without a fault: the runs differ packet by packet."""
