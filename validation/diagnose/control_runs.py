"""Runs of known congestion controls for ``controls.py``: Linux in virtual time, or the simulator.

A path is drawn from a seed. Each control runs on it as the only flow, and is captured at the sender and
at the receiver.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from anabranch import CongestionControl, Scenario
from anabranch.control import Ack, Congestion, Rto, Start
from anabranch.kernel import program

from diagnose.folder import within

GUEST = Path(__file__).with_name("control_guest.py")
KERNEL = "6.12"
DURATION_S = 20
POINTS = ("sender", "receiver")
FULL = 1514
"""Octets of a full frame."""

LINUX = {
    "cubic": "cubic", "reno": "reno", "bbr": "bbr", "vegas": "vegas", "westwood-plus": "westwood", "dctcp": "dctcp",
    "htcp": "htcp", "illinois": "illinois", "yeah": "yeah", "bic": "bic",
}  # fmt: skip
"""The controls that are named, and their names in Linux."""
OTHERS = {
    "scalable": "scalable", "hybla": "hybla", "highspeed": "highspeed", "veno": "veno", "lp": "lp", "nv": "nv",
    "cdg": "cdg",
}  # fmt: skip
"""Controls of Linux that are not named."""
SIMULATED = ("bbr3", "compound", "fixed-window", "delay-target")
"""Controls of the simulator: one that is named, and three that are not."""


class FixedWindow(CongestionControl):
    """A window that never changes."""

    name: ClassVar[str] = "fixed-window"

    def __init__(self, start: Start, segments: int = 100) -> None:
        super().__init__(start)
        self.cwnd = segments * start.smss

    def on_ack(self, ack: Ack) -> None:
        """Change nothing."""

    def on_congestion(self, event: Congestion) -> None:
        """Change nothing."""

    def on_rto(self, event: Rto) -> None:
        """Change nothing."""


class DelayTarget(CongestionControl):
    """A window that is proportional to the distance from a delay, as LEDBAT's (RFC 6817)."""

    name: ClassVar[str] = "delay-target"
    TARGET_S: ClassVar[float] = 0.025

    def on_ack(self, ack: Ack) -> None:
        """Grow or shrink by at most a segment per round trip."""
        if ack.rtt_s is not None and not ack.in_recovery:
            away = 1 - (ack.rtt_s - ack.min_rtt_s) / self.TARGET_S
            self.cwnd = max(2 * self.smss, self.cwnd + max(-1.0, away) * ack.acked * self.smss / self.cwnd)

    def on_congestion(self, event: Congestion) -> None:  # noqa: ARG002
        """Halve the window."""
        self.cwnd = max(self.cwnd / 2, 2 * self.smss)

    def on_rto(self, event: Rto) -> None:  # noqa: ARG002
        """Begin again."""
        self.cwnd = self.smss


_TEXT = """
duration = "{duration} s"
[link.sender]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "100 us"
[link.path]
between = ["M", "N"]
rate = "{rate:.3f} Mbit/s"
delay = "{delay:.3f} ms"
forward.queue = {queue}
{impair}
[link.receiver]
between = ["N", "B"]
rate = "1 Gbit/s"
delay = "100 us"
[flow.main]
from = "A"
to = "B"
cc = {control}
"""


@dataclass(frozen=True)
class TestPath:
    """A path with one bottleneck."""

    seed: int
    rate_mbit_s: float
    rtt_ms: float
    buffer_packets: int
    loss: float
    """The rate of random loss."""
    marks_ms: float
    """Time in the queue from which ECN-capable packets are marked; 0: never."""

    @classmethod
    def drawn(cls, seed: int) -> TestPath:
        """The path of a seed: 8 to 30 Mbit/s, 50 to 150 ms, and a buffer of 0.5 to 2 bandwidth-delay products."""
        dice = random.Random(f"path {seed}")
        rate, rtt = round(8 * (30 / 8) ** dice.random(), 3), round(dice.uniform(50, 150), 3)
        buffer, kind, strength = 0.5 * 4 ** dice.random(), dice.random(), dice.random()
        return cls(
            seed,
            rate_mbit_s=rate,
            rtt_ms=rtt,
            buffer_packets=round(buffer * rate * rtt * 125 / FULL),
            loss=round(10 ** (-4.3 + strength), 6) if kind < 0.3 else 0.0,
            marks_ms=round((0.1 + 0.3 * strength) * min(1.0, buffer) * rtt, 3) if kind > 0.65 else 0.0,
        )

    def text(self, control: str) -> str:
        """The scenario of a simulated control on this path."""
        queue = f'{{ kind = "drop-tail", limit = "{self.buffer_packets} packets" }}'
        loss = f'forward.impair = [{{ kind = "bernoulli-loss", rate = {self.loss} }}]' if self.loss else ""
        window = self.rate_mbit_s * self.rtt_ms * 125 / FULL + self.buffer_packets / 2
        is_fixed = control == "fixed-window"
        return _TEXT.format(
            duration=DURATION_S,
            rate=self.rate_mbit_s,
            delay=self.rtt_ms / 2 - 0.2,
            queue=queue,
            impair=loss,
            control=f'{{ kind = "{control}", segments = {window:.0f} }}' if is_fixed else f'"{control}"',
        )


def captures(path: TestPath, controls: Sequence[str], kept: Path) -> Iterator[tuple[str, str, Path]]:
    """Each control, capture point and capture on a path. Runs that the folder `kept` lacks are made.

    Raises:
        RuntimeError: The guest failed.
    """
    folder = kept / str(path.seed)
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "path.json"
    content = json.dumps({**asdict(path), "duration_s": DURATION_S})
    if note.exists() and note.read_text() != content:
        raise RuntimeError(f"{folder}: expected captures of {content}")
    note.write_text(content)
    files = {(name, point): folder / f"{name}-{point}.pcap" for name in controls for point in POINTS}
    missing = [name for name in controls if not all(files[name, point].exists() for point in POINTS)]
    for name in missing:
        if name in SIMULATED:
            scenario = Scenario.from_text(path.text(name), file=f"{name}.toml")
            scenario = scenario.with_controls(FixedWindow, DelayTarget)
            result = scenario.run(seed=path.seed, captures=POINTS)
            for point in POINTS:
                files[name, point].write_bytes(result.pcapng(point))
    wanted = {name: {**LINUX, **OTHERS}[name] for name in missing if name not in SIMULATED}
    if wanted:
        words = [sys.executable, str(GUEST), json.dumps({**json.loads(content), "controls": wanted})]
        with within(folder):
            status = program.run(words, seed=path.seed, kernel=KERNEL)
        if status != 0:
            raise RuntimeError(f"path {path.seed}: the guest ended with status {status}")
    for (name, point), file in files.items():
        yield name, point, file
