"""The summary of one run, typed: the JSON document of ``anabranch run --json``.

A figure that does not apply is ``None``, never 0. Rates cover the time from the later of flow start and end of warm-up
to the flow's end.
"""

from __future__ import annotations

from typing import Any, TypedDict


class FecReleases(TypedDict, total=False):
    """How often the receiver released held acknowledgments, by reason."""

    repaired: int
    retransmitted: int
    second_gap: int
    group_over: int
    timeout: int


class FecSummary(TypedDict):
    """Forward error correction of a flow. Rates are ratios (0‥1).

    ``redundancy_rate`` is redundant packets over all packets sent except pure acknowledgments;
    ``effective_recovery_rate`` is redundant packets that recovered a packet over redundant packets sent.
    ``hidden_losses`` are losses hidden from TCP, as reported to the sender.
    """

    redundant_packets: int
    redundant_bytes: int
    recovered_packets: int
    redundancy_rate: float | None
    effective_recovery_rate: float | None
    holds: int
    held_acks: int
    releases: FecReleases
    hidden_losses: int
    hidden_reductions: int
    refused_packets: int


class ReorderingSummary(TypedDict):
    """Reordering seen by a flow's receiver.

    ``n_reordering`` maps n to the ratio of n-reordered packets (RFC 4737 §5.3), ``density`` a displacement in
    packets to its share of all packets (RFC 5236 §4).
    """

    arrived_packets: int
    reordered_packets: int
    extent_max_packets: int | None
    n_reordering: dict[str, float]
    density: dict[str, float]


class TransferSummary(TypedDict):
    """Transfers of a workload with many transfers, if they began in the measured time."""

    started: int
    completed: int
    mean_completion_time_s: float | None
    p50_completion_time_s: float | None
    p95_completion_time_s: float | None
    p99_completion_time_s: float | None


class ExchangeSummary(TypedDict, total=False):
    """Requests and their responses over one connection, in the measured time.

    A response time lasts from the writing of the request to the arrival of the response's last byte.
    """

    started: int
    completed: int
    mean_response_time_ms: float | None
    p50_response_time_ms: float | None
    p95_response_time_ms: float | None
    p99_response_time_ms: float | None


class _Rates(TypedDict):
    """Rates of a flow."""

    goodput_mbit_s: float
    throughput_mbit_s: float


class _MaybeRates(TypedDict):
    """The same, but possibly ``None``."""

    goodput_mbit_s: float | None
    throughput_mbit_s: float | None


class _FlowFigures(TypedDict):
    """The other figures of a flow."""

    delivered_bytes: int
    sent_packets: int | None
    retransmitted_packets: int | None
    spurious_retransmissions: int | None
    fast_recoveries: int | None
    timeouts: int | None
    mean_cwnd_packets: float | None
    mean_srtt_ms: float | None
    min_rtt_ms: float | None
    cwnd_limited_share: float | None
    rwnd_limited_share: float | None
    sndbuf_limited_share: float | None
    application_limited_share: float | None
    flow_completion_time_s: float | None
    ended: str | None
    ended_at_s: float | None
    reordered_ratio: float | None
    reordering_extent_p95_packets: int | None
    reordering: ReorderingSummary | None
    malformed_segments: int | None
    refused: dict[str, int] | None
    transfers: TransferSummary | None
    exchanges: ExchangeSummary | None
    mean_one_way_delay_ms: float | None
    p95_one_way_delay_ms: float | None
    fec: FecSummary | None


class FlowSummary(_Rates, _FlowFigures):
    """One flow. ``goodput`` counts in-order application bytes, ``throughput`` IP bytes that arrive.

    ``refused`` maps reasons (``unsent_ack``, ``old_ack``, ``sack_block``, ``blind_reset``, ``old_reset``,
    ``blind_syn``, ``outside_window``, ``missing_timestamp``, ``old_timestamp``, ``flags``) to their number of
    occurrences at either end; ``malformed_segments`` is their sum without ``old_ack``, ``old_reset`` and
    ``old_timestamp``, which late packets may explain.
    The ``*_limited_share`` are shares (0‥1) of the measured time in which the congestion window, the receive window,
    the send buffer or the application limited the sender; the rest is pacing and recovery.
    ``reordering`` is ``None`` if nothing arrived, ``transfers`` unless the workload has many transfers, ``exchanges``
    unless it consists of requests and responses, ``fec`` without error correction.
    ``ended`` is ``completed`` (all of a file arrived, or the application stopped at ``stop``), ``running``, ``reset``,
    ``gave-up`` (no answer for too long) or ``refused`` (a reset answered the SYN). ``ended_at_s`` is the time since
    the start of the run, ``None`` while the flow runs. Workloads of many transfers have neither. Over UDP, all figures
    of TCP are ``None``. The one-way delays, from sending to arrival of a datagram, are ``None`` over TCP.
    If a flow ended before the warm-up did, ``goodput_mbit_s`` and ``throughput_mbit_s`` are ``None`` in the document;
    reading them from a result raises :class:`~anabranch.result.entries.NoFigureError`.
    """


class AnyFlowSummary(_MaybeRates, _FlowFigures):
    """A flow in the document of either engine, and in the result of a live run.

    Rates are ``None`` for a flow that ended before the warm-up did, and for a program of the user's.
    """


class CaptureSummary(TypedDict):
    """The input of a flow that replays a capture; ``skipped`` counts frames without a usable packet, by reason."""

    frames: int
    ip_packets: int
    replayed_packets: int
    not_selected_packets: int
    fragments: int
    time_went_back: int
    cut_off: bool
    trailing_bytes: int
    skipped: dict[str, int]


class LinkSummary(TypedDict):
    """One direction of a link: ``dropped`` by queues, ``lost`` by impairments; means are weighted by time."""

    sent_packets: int
    dropped_packets: int
    too_big_packets: int | None
    lost_packets: int
    reordered_packets: int
    marked_packets: int
    utilization: float | None
    mean_queue_packets: float | None
    max_queue_packets: int
    p95_queue_delay_ms: float | None
    p99_queue_delay_ms: float | None


class GroupSummary(TypedDict):
    """An aggregated link and the actions of its control."""

    mean_active_members: float | None
    member_seconds_off: float | None
    energy_joules: float | None
    joules_per_gigabit: float | None
    changes: int
    overloaded_ms_share: float | None
    port_seconds: dict[str, float]
    lacpdus_sent: int
    lacpdus_lost: int


class TunnelPath(TypedDict, total=False):
    """State of a tunnel's path at the end of the run; only if the gateway's ``kind`` is ``"tunnel"``."""

    state: str
    deaths: int
    rtt_ms: float | None
    rate_mbit_s: float
    mtu: int


class RouteSummary(TunnelPath):
    """Packets and bytes that a gateway sent over one route, including copies and the tunnel's overhead."""

    sent_packets: int
    sent_bytes: int


class TunnelFigures(TypedDict, total=False):
    """Counters of a tunnel; only if the gateway's ``kind`` is ``"tunnel"``."""

    entered_packets: int
    class_packets: dict[str, int]
    refused_packets: int
    queue_dropped_packets: int
    unsendable_packets: int
    repaired_packets: int
    reordered_packets: int
    unmatched_packets: int
    sessions: int


class RestorerFigures(TypedDict, total=False):
    """Counters of a restorer; only if the gateway's ``kind`` is ``"split"``."""

    held_packets: int
    released_by_timer: int
    max_held_bytes: int
    mean_wait_ms: float | None
    p95_wait_ms: float | None


class GatewaySummary(RestorerFigures, TunnelFigures):
    """One direction of a gateway: the packets sent over each route, and the packets held back to restore order."""

    routes: dict[str, RouteSummary]
    released_packets: int
    gaps_given_up: int
    duplicates_dropped: int
    max_held_packets: int
    silent_ms: float


class FairnessSummary(TypedDict):
    """Jain's index over the flows' goodputs (1/n‥1)."""

    jain_index: float | None


class EngineStats(TypedDict):
    """Cost of the run."""

    events: int
    delivered_packets: int
    cpu_s: float | None
    wall_s: float | None
    peak_rss_bytes: int | None


class DatagramAccount(TypedDict, total=False):
    """Datagrams of a UDP flow, counted from the sending program into the network and from there to the receiver."""

    written: int
    taken: int
    left: int
    released: int
    read: int


class LiveAudit(TypedDict, total=False):
    """The live engine's audit of itself."""

    tainted: bool
    reasons: list[str]
    released_packets: int
    taken_packets: int
    in_flight_packets: int
    foreign_packets: int
    merged_packets: int
    p50_lateness_ms: float | None
    p99_lateness_ms: float | None
    max_lateness_ms: float | None
    io_drops: int
    datagrams: dict[str, DatagramAccount]
    p50_write_lateness_ms: float | None
    p99_write_lateness_ms: float | None
    max_write_lateness_ms: float | None
    cpu_share: float
    limits: dict[str, float]


class LivePackets(TypedDict):
    """All packets of a live run, including the warm-up: counted at the sender, in transit, and at the receiver."""

    kernel_sent: int
    kernel_taken: int
    taken: int
    waiting: int
    sent_packets: int
    made_packets: int
    received_packets: int
    dropped_packets: int
    too_big_packets: int
    lost_packets: int
    discarded_packets: int
    held_packets: int
    in_flight_packets: int
    released: int
    kernel_released: int
    kernel_answered: int
    kernel_received: int
    kernel_refused: int


class LiveProgram(TypedDict, total=False):
    """The outcome of a program of the user's."""

    host: str
    command: list[str]
    status: int | None
    stopped: bool
    contained: bool
    names: bool


class LiveTrace(TypedDict):
    """The trace of the kernel: ``detail`` is ``acks``, ``events``, or ``None`` for the reason ``why_not``."""

    detail: str | None
    why_not: str | None
    records: int
    lost_records: int
    merged_segments: dict[str, int] | None
    flows: dict[str, dict[str, Any]]


class LiveControl(TypedDict):
    """A flow's congestion control in the kernel, and whether this run loaded it."""

    name: str | None
    file: str | None
    loaded: bool


class LiveEnd(TypedDict):
    """One end of a flow: the owner of its TCP, the application's bytes, and the negotiated options."""

    tcp: str
    written_bytes: int
    read_bytes: int
    timestamps: bool
    sack: bool
    window_scaling: bool
    ecn: bool
    endpoint: dict[str, Any] | None


class LiveSummary(TypedDict, total=False):
    """Fields of a live run only: its audit, programs, and the machine.

    ``ends`` has each flow's two ends, ``from`` and ``to``; ``tcp_counters`` the kernel's ``Tcp`` counters by host.
    """

    audit: LiveAudit
    packets: LivePackets
    controls: dict[str, LiveControl]
    ends: dict[str, dict[str, LiveEnd]]
    tcp_counters: dict[str, dict[str, int]]
    default_controls: dict[str, str]
    programs: list[LiveProgram]
    trace: LiveTrace
    machine: dict[str, Any]


class _Head(TypedDict):
    """The document before its flows."""

    format: int
    scenario: str
    seed: int
    engine: str
    duration_s: float
    digest: str | None
    anabranch_version: str
    resolved_scenario: dict[str, Any]
    platform: str


class _Rest(TypedDict):
    """The document after its flows."""

    links: dict[str, dict[str, LinkSummary]]
    groups: dict[str, GroupSummary]
    gateways: dict[str, dict[str, GatewaySummary]]
    fairness: FairnessSummary
    captures: dict[str, CaptureSummary]
    engine_stats: EngineStats


class _FlowsOfSummary(TypedDict):
    flows: dict[str, FlowSummary]


class Summary(_Head, _FlowsOfSummary, _Rest):
    """The whole document, as in the result of a run of the simulator."""


class _FlowsOfAnySummary(TypedDict):
    flows: dict[str, AnyFlowSummary]


class AnySummary(_Head, _FlowsOfAnySummary, _Rest):
    """The whole document of either engine, in its stored form."""


class LiveRunSummary(AnySummary, total=False):
    """The whole document of a live run."""

    tainted: bool
    live: LiveSummary


class Resolved(TypedDict):
    """A scenario after parsing, before a run: its flows, links and sweep."""

    title: str
    seed: int
    duration_s: float
    warmup_s: float
    flows: list[str]
    links: list[str]
    files: list[str]
    sweep: dict[str, Any]
    resolved_scenario: dict[str, Any]
