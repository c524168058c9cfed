"""Parts of the diagnosis document that simulations add: the replay and the advice of a connection.

The reference page of JSON documents has the docstrings below the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from anabranch.keys.component import Component

if TYPE_CHECKING:
    from typing_extensions import NotRequired


MeasureName = Literal["goodput_mbit_s", "rtt_min_ms", "rtt_median_ms", "rtt_p95_ms", "retransmissions"]


class Measure(TypedDict):
    """A measure of the capture beside the simulated runs'."""

    capture: float | None
    """In the capture."""
    simulation: float | None
    """The simulated runs' mean."""
    low: float | None
    """The lower end of its 95 % interval; null if all runs are alike."""
    high: float | None
    """The upper end."""


class Replay(TypedDict):
    """A connection simulated on the fitted path."""

    seeds: int
    """Simulated runs."""
    goodput_mbit_s: Measure
    """Goodput."""
    rtt_min_ms: Measure
    """The least round trip."""
    rtt_median_ms: Measure
    """The median."""
    rtt_p95_ms: Measure
    """The 95th percentile."""
    retransmissions: Measure
    """Retransmissions."""


class Mean(TypedDict):
    """A mean over the seeds."""

    mean: float
    """The mean."""
    low: float | None
    """The lower end of its 95 % interval; null if all runs are alike."""
    high: float | None
    """The upper end."""


class KernelFigures(TypedDict):
    """Figures of a remedy with the TCP of a kernel."""

    goodput_mbit_s: float | None
    """Goodput."""
    rtt_ms: float | None
    """Mean round trip."""


class Advice(TypedDict):
    """A remedy on the fitted path."""

    remedy: str
    """Its name; `nothing` is the unchanged path."""
    title: str
    """Description."""
    effort: str
    """Where it has to be changed."""
    set: Component
    """The keys of the fitted scenario that it changes."""
    goodput_mbit_s: Mean
    """Goodput with it."""
    gain: Mean
    """The relative change of goodput, run by run."""
    rtt_ms: Mean
    """Mean round trip with it."""
    rtt_change: Mean
    """The relative change of the round trip."""
    cost_to_others: Mean
    """The share of goodput that a CUBIC flow beside it loses by it."""
    helps: bool
    """Whether it helps: the gain's interval lies above 2 %, or it relieves the queue."""
    score: float
    """The figure by which remedies are ranked."""
    seeds: int
    """Simulated runs."""
    live: NotRequired[KernelFigures]
    """With `--live`: its figures with this machine's kernel."""
    kernel: NotRequired[KernelFigures]
    """With `--engine kernel`: its figures with a kernel in virtual time."""


class AddedConnection(TypedDict, total=False):
    """Keys that Python adds to a connection."""

    replay: Replay
    """The replay, with `--replay`."""
    flow: str
    """The flow of the run that was captured (`RunResult.diagnose`)."""
