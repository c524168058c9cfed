"""``anabranch aqm``: queues at the egress of a device, as eBPF programs in the running kernel."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Annotated

from anabranch.cli.command import Argument, Group, Option, command
from anabranch.cli.common import console, note, print_json
from anabranch.cli.options import Json

aqm = Group(
    "aqm",
    "Queues at a device's egress, as eBPF programs in the kernel.",
    {
        "attach": ("aqm:attach_queue", "Drop or mark a device's packets by a queue's rule."),
        "confirm": ("aqm:confirm_queue", "Keep an attached queue until it is detached or the machine restarts."),
        "status": ("aqm:print_status", "Print the counters of attached queues."),
        "detach": ("aqm:detach_queue", "Remove a device's queue, with its counters."),
    },
)

Device = Annotated[str, Argument("DEV", "Network device, e.g. eth0.")]


@dataclass(frozen=True, kw_only=True)
class AttachOptions:
    """The options of ``aqm attach``."""

    device: Device
    kind: Annotated[str, Option("--kind", "Queue: share-red.", "KIND")] = "share-red"
    rate: Annotated[
        str | None,
        Option("--rate", "Rate of the virtual link: that of the bottleneck, e.g. '95 Mbit/s'. Required.", "RATE"),
    ] = None
    sets: Annotated[
        tuple[str, ...],
        Option(
            "--set",
            "A parameter of the queue, e.g. min_threshold='20 packets'; may be given more than once.",
            "KEY=VALUE",
        ),
    ] = ()
    confirm_within: Annotated[
        int | None,
        Option(
            "--confirm-within",
            "Seconds after which the queue is removed unless it is confirmed; 60 when left out.",
            "SECONDS",
        ),
    ] = None
    no_confirm: Annotated[bool, Option("--no-confirm", "Keep the queue without a confirmation.")] = False


@command(
    AttachOptions,
    "anabranch aqm attach eth0 --kind share-red --rate '95 Mbit/s'",
    "anabranch aqm attach eth0 --rate '1 Gbit/s' --set ecn=true --set min_threshold='100 packets' --no-confirm",
    name="attach",
)
def attach_queue(options: AttachOptions) -> None:
    """Drop or mark a device's packets by a queue's rule.

    The queue is virtual: no packet waits in it. A queue that is not confirmed is removed, so that a mistake cannot
    lock out the connection over which it was typed.
    """
    from anabranch.aqm.attach import DEFAULT_WAIT_S, attach
    from anabranch.errors import UserError

    device, within = options.device, options.confirm_within
    if options.no_confirm and within is not None:
        raise UserError("--no-confirm and --confirm-within exclude each other")
    if not options.rate:
        raise UserError("--rate is missing: the rate of the bottleneck, e.g. --rate '95 Mbit/s'")
    if within is None and not options.no_confirm:
        within = DEFAULT_WAIT_S
    attached = attach(device, options.kind, options.rate, options.sets, confirm_within=within)
    if attached.mounted is not None:
        note(f"mounted a BPF file system at {attached.mounted}: queues are kept in it")
    if attached.seconds is None:
        note(f"{options.kind} is attached to {device} until `anabranch aqm detach {device}` or a restart")
    else:
        left = math.ceil(attached.seconds)
        note(f"{options.kind} is attached to {device} for {left} s; to keep it: anabranch aqm confirm {device}")


@dataclass(frozen=True, kw_only=True)
class ConfirmOptions:
    """The options of ``aqm confirm``."""

    device: Device


@command(ConfirmOptions, "anabranch aqm confirm eth0", name="confirm")
def confirm_queue(options: ConfirmOptions) -> None:
    """Keep an attached queue until it is detached or the machine restarts."""
    from anabranch.aqm import confirm

    had_to_be = confirm(options.device)
    note(f"the queue of {options.device} {'remains' if had_to_be else 'was confirmed already'}")


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """The options of ``aqm status``."""

    device: Annotated[str | None, Argument("[DEV]", "Network device; all of them when left out.")] = None
    json: Json = False
    prometheus: Annotated[bool, Option("--prometheus", "Prometheus's text format on standard output.")] = False


@command(
    StatusOptions,
    "anabranch aqm status",
    "anabranch aqm status --prometheus > /var/lib/prometheus/node-exporter/anabranch_aqm.prom",
    name="status",
)
def print_status(options: StatusOptions) -> None:
    """Print the counters of attached queues.

    The lengths are those after the last packet. The time per packet needs `sysctl kernel.bpf_stats_enabled=1`.
    """
    from anabranch.aqm import metrics, status
    from anabranch.cli.columns import Column, print_table
    from anabranch.errors import UserError

    if options.json and options.prometheus:
        raise UserError("--json and --prometheus exclude each other")
    queues = status(options.device)
    if options.json:
        print_json(queues)
        return
    if options.prometheus:
        sys.stdout.write(metrics(queues))
        return
    if not queues:
        place = "" if options.device is None else f" to {options.device}"
        device = options.device or "DEV"
        note(f"no queue is attached{place}; anabranch aqm attach {device} --kind share-red --rate RATE")
        return
    for queue in queues:
        left = queue.get("seconds_to_confirm")
        state = (
            "remains" if queue["confirmed"] else f"{left} s left to confirm" if left else "not confirmed: passes all"
        )
        cost = queue["ns_per_packet"]
        unit = queue["average_in"]
        rows = [
            ("queue", f"{queue['kind']} at {queue['rate_bit_s'] / 1e6:g} Mbit/s, {state}"),
            ("arrived", f"{queue['packets']:,} packets, {queue['bytes']:,} bytes"),
            ("dropped", f"{queue['dropped_packets']:,} packets, of them {queue['full_packets']:,} at a full queue"),
            ("marked", f"{queue['marked_packets']:,} packets"),
            ("length", f"{queue['waiting_packets']:,} packets; average {queue['average']:.1f} {unit}"),
            ("connections", f"{queue['connections']:,} recorded, {queue['active_connections']:,} active"),
            ("load", f"{queue['load']:.2f}"),
            ("several segments in one", f"{queue['aggregates']:,} buffers"),
            (
                "not IP, without limit",
                f"{queue['other_frames']:,} frames, e.g. of ARP, PPPoE, or with a VLAN tag inside",
            ),
            *([("time per packet", f"{cost:.0f} ns")] if cost is not None else []),
        ]
        heads = (queue["device"], "")
        print_table(
            console(), [Column(head, [row[i] for row in rows], is_text=True) for i, head in enumerate(heads)], []
        )


@dataclass(frozen=True, kw_only=True)
class DetachOptions:
    """The options of ``aqm detach``."""

    device: Device


@command(DetachOptions, "anabranch aqm detach eth0", name="detach")
def detach_queue(options: DetachOptions) -> None:
    """Remove a device's queue, with its counters."""
    from anabranch.aqm import detach

    detach(options.device)
    note(f"{options.device} has no queue of anabranch any more")
