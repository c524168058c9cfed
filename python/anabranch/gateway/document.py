"""The JSON document of ``anabranch gateway plan --json``, typed. A figure that does not apply is ``None``, never 0."""

from __future__ import annotations

from typing import TypedDict


class PlanFigure(TypedDict):
    """A figure over all seeds."""

    median: float
    min: float
    max: float


class PlanResponse(TypedDict):
    """Response times of the small requests beside the bulk."""

    p50: PlanFigure | None
    p95: PlanFigure | None


class PlanGoodput(TypedDict, total=False):
    """Figures of one set of paths; ``response_ms`` only with one flow, ``shares`` only with the gateway."""

    goodput_mbit_s: PlanFigure | None
    response_ms: PlanResponse
    shares: dict[str, PlanFigure | None]


class PlanComparison(TypedDict):
    """The gateway compared with each path alone."""

    together: PlanGoodput
    alone: dict[str, PlanGoodput]


class PlanFailover(TypedDict):
    """One flow while a path fails for a third of the measured time."""

    before_silent_ms: PlanFigure | None
    silent_ms: PlanFigure | None
    after_silent_ms: PlanFigure | None
    before_mbit_s: PlanFigure | None
    during_mbit_s: PlanFigure | None
    after_mbit_s: PlanFigure | None
    shares: dict[str, PlanFigure | None]


class PlanCall(TypedDict):
    """A call in a class beside bulk."""

    mean_delay_ms: PlanFigure | None
    p95_delay_ms: PlanFigure | None
    lost_packets: PlanFigure | None


class PlanCallFailover(TypedDict):
    """The call alone while a path fails."""

    silent_ms: PlanFigure | None
    lost_packets: PlanFigure | None


class PlanClass(TypedDict):
    """Figures of the packets of a class."""

    mode: str
    goodput_mbit_s: PlanFigure | None
    call: PlanCall
    failover: dict[str, PlanCallFailover]


class PlanDirection(TypedDict):
    """A direction of the bulk."""

    one_flow: PlanComparison
    many_flows: PlanComparison
    failover: dict[str, PlanFailover]
    classes: dict[str, PlanClass]
    no_class: PlanClass | None


class PlanSide(TypedDict):
    """A direction of a path."""

    rate_mbit_s: float | None
    delay_ms: float | None


class PlanPath(TypedDict):
    """A path with its simulated properties."""

    policy: str
    source: str
    idle_mb_month: float
    absent_mb_month: float
    up: PlanSide
    down: PlanSide


class PlanDocument(TypedDict):
    """The whole document."""

    format: int
    file: str
    anabranch_version: str
    cc: str
    flows: int
    seconds: int
    seeds: int
    paths: dict[str, PlanPath]
    directions: dict[str, PlanDirection]
    remarks: list[str]
