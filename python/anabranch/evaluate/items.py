"""Every item of RFC 9743 §§ 5 to 7, RFC 5166 and RFC 7928, each with its checks or the reason why it has none.

The criteria and their sources were fixed before the first run. The table also makes the guide's list of items.
"""

from __future__ import annotations

from dataclasses import dataclass

RFC_9743 = "RFC 9743"
RFC_5166 = "RFC 5166"
RFC_7928 = "RFC 7928"
DOCUMENTS = {
    RFC_9743: "Specifying New Congestion Control Algorithms",
    RFC_5166: "Metrics for the Evaluation of Congestion Control Mechanisms",
    RFC_7928: "Characterization Guidelines for Active Queue Management",
}


@dataclass(frozen=True)
class Item:
    """A section of a document that asks for an evaluation.

    Attributes:
        document: The document.
        section: The section.
        title: Its title.
        checks: The checks that answer it.
        why_not: The reason why there is none, or what the checks leave out.
    """

    document: str
    section: str
    title: str
    checks: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def id(self) -> str:
        """Its name: ``9743-5.1.1``."""
        return f"{self.document.removeprefix('RFC ')}-{self.section}"


def _item(document: str, section: str, title: str, *checks: str, why_not: str = "") -> Item:
    return Item(document, section, title, checks, why_not)


_TEXT = "it concerns the text of a specification, which no run can show"

CONTROL_ITEMS: tuple[Item, ...] = (
    _item(RFC_9743, "5.1.1", "Protection against congestion collapse", "blackout", "heavy-loss"),
    _item(RFC_9743, "5.1.2", "Protection against bufferbloat", "tail-drop-delay", "rpm-foreign", "rpm-self"),
    _item(
        RFC_9743,
        "5.1.3",
        "Protection against high packet loss",
        "loss-of-several",
        "tail-drop-loss",
        "many-loss",
        "policer-loss",
        "policer-goodput",
    ),
    _item(RFC_9743, "5.1.4", "Fairness within the proposed algorithm", "fairness", "many-fairness", "convergence"),
    _item(RFC_9743, "5.1.5", "Short flows", "short-time", "short-long", "startup"),
    _item(
        RFC_9743,
        "5.2",
        "Mixed algorithm behavior: harm and starvation",
        "starvation",
        "harm-goodput",
        "harm-delay",
        "harm-loss",
    ),
    _item(
        RFC_9743,
        "5.2.1",
        "Existing general-purpose congestion control",
        "harm-goodput",
        "harm-delay",
        "harm-loss",
        "harm-crowd",
    ),
    _item(
        RFC_9743,
        "5.2.2",
        "Real-time congestion control",
        "call-delay",
        "call-loss",
        why_not="the call does not adapt its rate: there is no real-time congestion control in the engine",
    ),
    _item(RFC_9743, "5.2.3", "Short and long flows", "cubic-short-time", "cubic-long"),
    _item(RFC_9743, "5.3.1", "Differences with congestion control principles", why_not=_TEXT),
    _item(RFC_9743, "5.3.2", "Incremental deployment", why_not=_TEXT),
    _item(RFC_9743, "6.1", "Paths with tail-drop queues", "tail-drop-utilization", "tail-drop-delay", "tail-drop-loss"),
    _item(RFC_9743, "6.2", "Tunnel behavior", why_not="the engine has no tunnel that hides or copies ECN marks"),
    _item(RFC_9743, "6.3", "Wired paths", "tail-drop-utilization", "oscillation", "fairness"),
    _item(RFC_9743, "6.4", "Wireless paths", "wireless-goodput", "wireless-delay"),
    _item(
        RFC_9743,
        "7.1",
        "Active queue management",
        "aqm-utilization",
        "aqm-delay",
        "aqm-harm",
        "l4s-harm",
        "l4s-share",
        "l4s-burst-harm",
        "l4s-burst-share",
    ),
    _item(RFC_9743, "7.2", "Operation within the envelope set by network circuit breakers", "breaker"),
    _item(RFC_9743, "7.3", "Paths with varying delay", "varying-delay", "varying-delay-queue"),
    _item(
        RFC_9743,
        "7.4",
        "Internet of Things and constrained nodes",
        "iot-time",
        "iot-packets",
        why_not="the power and processor time of a node are not modelled",
    ),
    _item(RFC_9743, "7.5", "Paths with high delay", "high-delay", "high-delay-queue"),
    _item(
        RFC_9743,
        "7.6",
        "Misbehaving nodes",
        "unresponsive-goodput",
        "unresponsive-loss",
        "policer-goodput",
        why_not="receivers and attackers that misbehave: the engine has only such senders and routers",
    ),
    _item(RFC_9743, "7.7", "Extreme packet reordering", "reordering", "reordering-spurious"),
    _item(RFC_9743, "7.8", "Transient events", "onset-loss", "onset-delay", "outage"),
    _item(RFC_9743, "7.9", "Sudden changes in the path", "change-utilization", "change-delay"),
    _item(
        RFC_9743,
        "7.10",
        "Multipath transport",
        why_not="a control of one path is evaluated; the engine has no multipath transport whose paths it could couple",
    ),
    _item(RFC_9743, "7.11", "Data centers", "incast", "fabric-delay", "fabric-utilization"),
    _item(RFC_5166, "2.1.1", "Throughput", "tail-drop-utilization", "high-delay"),
    _item(RFC_5166, "2.1.2", "Delay", "tail-drop-delay", "startup"),
    _item(RFC_5166, "2.1.3", "Packet loss rates", "tail-drop-loss", "loss-of-several"),
    _item(
        RFC_5166,
        "2.2.1",
        "Response to changes",
        "change-utilization",
        "change-delay",
        "onset-loss",
        "onset-delay",
        "outage",
    ),
    _item(RFC_5166, "2.2.2", "Minimizing oscillations", "oscillation"),
    _item(
        RFC_5166,
        "2.3.1",
        "Metrics for fairness between flows",
        "fairness",
        "many-fairness",
        "ware-goodput",
        "ware-delay",
    ),
    _item(
        RFC_5166,
        "2.3.2",
        "Metrics for fairness between flows with different resource requirements",
        "rtt-fairness",
        "parking-lot",
    ),
    _item(
        RFC_5166,
        "2.3.3",
        "Comments on fairness: convergence times, round-trip times, congested links",
        "convergence",
        "rtt-fairness",
        "parking-lot",
        why_not="packet sizes are of queues: see RFC 7928 §4.4",
    ),
    _item(
        RFC_5166,
        "2.4",
        "Robustness for challenging environments",
        "reordering",
        "wireless-goodput",
        "varying-delay",
        "reverse",
        why_not="energy is not modelled",
    ),
    _item(
        RFC_5166, "2.5", "Robustness to failures and to misbehaving users", "blackout", "outage", "unresponsive-goodput"
    ),
    _item(
        RFC_5166,
        "2.6",
        "Deployability",
        why_not="the complexity of code and the need for changes elsewhere are not properties of a run",
    ),
    _item(
        RFC_5166,
        "2.7",
        "Metrics for specific types of transport",
        why_not="it is about networks with quality of service and lower-than-best-effort transport",
    ),
    _item(
        RFC_5166,
        "2.8",
        "User-based metrics",
        "rpm-foreign",
        "short-time",
        "call-delay",
        "call-loss",
        why_not="waiting times and calls stand for the user; satisfaction is not modelled",
    ),
    _item(RFC_5166, "3", "Metrics in the IPPM working group", "rpm-foreign", "rpm-self", "call-delay"),
)
"""The items for congestion controls."""

QUEUE_ITEMS: tuple[Item, ...] = (
    _item(RFC_7928, "2.1", "Flow completion time", "q-files-time"),
    _item(RFC_7928, "2.2", "Flow startup time", "q-requests"),
    _item(RFC_7928, "2.3", "Packet loss", "q-baseline-loss", "q-levels-loss"),
    _item(RFC_7928, "2.4", "Packet loss synchronization", "q-synchronization"),
    _item(RFC_7928, "2.5", "Goodput", "q-baseline-goodput", "q-levels-goodput"),
    _item(RFC_7928, "2.6", "Latency and jitter", "q-baseline-delay", "q-call-delay"),
    _item(RFC_7928, "2.7", "Trade-off between latency and goodput", "q-baseline-delay", "q-baseline-goodput"),
    _item(RFC_7928, "3.2", "Buffer size", "q-buffers-delay", "q-buffers-goodput"),
    _item(RFC_7928, "3.3", "Congestion controls", "q-controls-delay", "q-controls-goodput"),
    _item(
        RFC_7928,
        "4.3.1",
        "Performance comparison",
        "q-baseline-delay",
        "q-baseline-goodput",
        "q-levels-delay",
        "q-levels-goodput",
    ),
    _item(RFC_7928, "4.3.2", "Deployment comparison", why_not="it is a discussion of parameters and cost"),
    _item(RFC_7928, "4.4", "Packet sizes and congestion notification", "q-packet-sizes"),
    _item(RFC_7928, "4.5", "Interaction with ECN", "q-ecn-delay", "q-ecn-goodput"),
    _item(
        RFC_7928,
        "4.6",
        "Interaction with scheduling",
        why_not="the RFC leaves the evaluation of schedulers out of its scope",
    ),
    _item(
        RFC_7928, "5.1.1", "TCP-friendly sender with the same initial window", "q-friendly-delay", "q-friendly-goodput"
    ),
    _item(RFC_7928, "5.1.2", "TCP-friendly senders with different initial windows", "q-windows"),
    _item(RFC_7928, "5.2", "Aggressive transport sender", "q-aggressive-delay", "q-aggressive-goodput"),
    _item(RFC_7928, "5.3", "Unresponsive transport sender", "q-unresponsive-delay", "q-unresponsive-goodput"),
    _item(
        RFC_7928,
        "5.4",
        "Less-than-best-effort transport sender",
        why_not="the engine has no LEDBAT or other less-than-best-effort control",
    ),
    _item(RFC_7928, "6", "Round-trip time fairness", "q-rtt-fairness"),
    _item(RFC_7928, "7", "Burst absorption", "q-burst-time", "q-burst-loss", "q-burst-delay"),
    _item(RFC_7928, "8.2.2", "Mild congestion", "q-mild-delay", "q-mild-goodput"),
    _item(RFC_7928, "8.2.3", "Medium congestion", "q-medium-delay", "q-medium-goodput"),
    _item(RFC_7928, "8.2.4", "Heavy congestion", "q-heavy-delay", "q-heavy-goodput"),
    _item(RFC_7928, "8.2.5", "Varying the congestion level", "q-varying-level-delay", "q-varying-level-goodput"),
    _item(RFC_7928, "8.2.6", "Varying available capacity", "q-capacity-delay", "q-capacity-goodput"),
    _item(
        RFC_7928,
        "8.3",
        "Parameter sensitivity and stability analysis",
        why_not="it asks for an analysis of the control law; `anabranch sweep` varies parameters",
    ),
    _item(RFC_7928, "9.1", "Traffic mix", "q-mix-call", "q-mix-web", "q-mix-goodput"),
    _item(RFC_7928, "9.2", "Bidirectional traffic", "q-two-way-delay", "q-two-way-goodput"),
    _item(RFC_7928, "10", "Multi-AQM scenario", "q-two-queues-delay", "q-two-queues-goodput"),
    _item(
        RFC_7928, "11", "Implementation cost", why_not="the cost in hardware or in a kernel is not a property of a run"
    ),
    _item(RFC_7928, "12", "Operator control and auto-tuning", why_not="it is a discussion of parameters"),
)
"""The items for queues."""

ITEMS = CONTROL_ITEMS + QUEUE_ITEMS


def items_of(role: str) -> tuple[Item, ...]:
    """The items for a role of a subject."""
    return QUEUE_ITEMS if role == "queue" else CONTROL_ITEMS
