"""Compare random paths on a Linux kernel in virtual time with the simulator.

    python validation/kernel/random_paths.py            # prints the table of docs/validation/random-paths.md
    python validation/kernel/random_paths.py --write    # brings the page up to date, from the kept figures
    python validation/kernel/random_paths.py --kernel   # runs the kernel, keeps its figures, and writes the page
    python validation/kernel/random_paths.py --check    # exit status 1 if the page is not up to date
    python validation/kernel/random_paths.py --look 7000 20    # runs 20 other paths in both, and prints them

``--kernel`` and ``--look`` need a kernel that ``anabranch kernel build`` has made.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from kernel.drawn_paths import PROFILE, Comparison, has_sack  # noqa: E402


@dataclass(frozen=True)
class RandomPath:
    """A random path with one flow.

    Attributes:
        number: Its number and seed.
        rate: Mbit/s.
        rtt: Milliseconds without queueing.
        queue: The queue, a table of the scenario format.
        impair: The impairment, a table of the scenario format, or an empty text.
        transport: Keys of the endpoint.
        control: The congestion control.
        seconds: The duration.
    """

    number: int
    rate: int
    rtt: int
    queue: str
    impair: str
    transport: tuple[str, ...]
    control: str
    seconds: int

    @classmethod
    def of(cls, number: int) -> RandomPath:
        """Draw the path with this number."""
        draw = random.Random(number)  # noqa: S311
        rate, rtt = draw.choice((2, 5, 10, 20)), draw.choice((10, 30, 60, 120, 200))
        product = rate * 1e6 * rtt / 1e3 / 8 / 1500
        limit = max(5, round(product * draw.choice((0.3, 1, 2))))
        kind = draw.choice(("drop-tail", "drop-tail", "codel", "fq-codel", "pie"))
        size = f', limit = "{limit} packets"' if kind == "drop-tail" else ""
        losses = [
            *(f'kind = "bernoulli-loss", rate = {rate}' for rate in (0.0003, 0.001, 0.005, 0.02)),
            *(f'kind = "gilbert-elliott", p = {p}, r = {r}' for p in (0.0005, 0.002) for r in (0.2, 0.5)),
            *(f'kind = "jitter", mean = "{mean} ms"' for mean in (1, 5)),
        ]
        impair = draw.choice(losses) if draw.random() < 0.6 else ""
        keys = [("sack = false", 0.3), ("timestamps = false", 0.3), ('mss = "1200 bytes"', 0.15)]
        transport = tuple(key for key, chance in keys if draw.random() < chance)
        control = draw.choice(("cubic", "cubic", "reno", "bbr", "vegas", "westwood-plus", "dctcp", "htcp", "bic"))
        return cls(number, rate, rtt, f'kind = "{kind}"{size}', impair, transport, control, draw.choice((8, 12)))

    def text(self, step: float = 0.0, stack: str = PROFILE) -> str:
        """The scenario, with a delay that differs by this share."""
        lines = [
            f'duration = "{self.seconds} s"',
            "[link.path]",
            'between = ["A", "B"]',
            f'rate = "{self.rate} Mbit/s"',
            f'delay = "{round(self.rtt * 500 * (1 + step))} us"',
            f"forward.queue = {{ {self.queue} }}",
            *([f"forward.impair = [{{ {self.impair} }}]"] if self.impair else []),
            "[flow.main]",
            'from = "A"',
            'to = "B"',
            f'stack = "{stack}"',
            f'cc = "{self.control}"',
            *([f"transport = {{ {', '.join(self.transport)} }}"] if self.transport else []),
        ]
        return "\n".join(lines) + "\n"

    def row(self) -> list[str]:
        """Its cells of the table."""
        words = ("kind = ", '"', "{", "}")
        queue, impair, keys = self.queue, self.impair or "–", ", ".join(self.transport) or "–"
        for word in words:
            queue, impair, keys = (text.replace(word, "") for text in (queue, impair, keys))
        return [str(self.number), self.control, f"{self.rate} Mbit/s, {self.rtt} ms", queue, impair, keys]


COMPARISON = Comparison(
    script="random_paths.py",
    page=ROOT / "docs/validation/random-paths.md",
    data=ROOT / "validation/data/random-paths.json",
    heads=("path", "control", "rate, RTT", "queue", "impairment", "endpoints"),
    of=RandomPath.of,
    first=1000,
    count=60,
    groups={"with SACK": has_sack, "without SACK": lambda path: not has_sack(path)},
)


if __name__ == "__main__":
    sys.exit(COMPARISON.main((__doc__ or "").splitlines()[0]))
