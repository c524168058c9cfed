"""The field's other names for what Anabranch has: of other simulators, of Linux's `tc` and `sysctl`, of papers."""

from __future__ import annotations

_NAMES = {
    "drop-tail": "taildrop tail-drop droptail fifo pfifo bfifo pfifo-fast",
    "red": "ared wred random-early-detection",
    "drr": "sfq wfq fair-queueing deficit-round-robin",
    "fq-codel": "fqcodel",
    "threshold-mark": "step-marking",
    "reno": "newreno tcp-reno",
    "bic": "bic-tcp",
    "westwood-plus": "westwood westwood+ tcpw",
    "compound": "ctcp compound-tcp",
    "cubic": "tcp-cubic",
    "bbr": "bbrv1 bbr1",
    "bbr3": "bbrv3",
    "bpf": "ebpf struct-ops",
    "bernoulli-loss": "loss packet-loss random-loss plr netem-loss uniform-loss",
    "gilbert-elliott": "gemodel gilbert burst-loss netem-loss-gemodel",
    "four-state-loss": "netem-loss-state",
    "jitter": "netem-jitter delay-variation pdv netem-reorder",
    "duplicate": "netem-duplicate duplication",
    "corrupt": "netem-corrupt corruption bit-errors",
    "link.delay": "netem-delay latency propagation-delay prop-delay one-way-delay",
    "link.rate": "netem-rate bandwidth capacity bitrate tbf htb",
    "link.queue.limit": "netem-limit buffer buffer-size qlen queue-length queue-size txqueuelen",
    "link.queue.reorder": "packet-reordering",
    "link.impair": "netem impairments",
    "link.up": "link-down outage",
    "trace": "mahimahi variable-rate",
    "initial_cwnd": "cwnd iw initcwnd initial-window init-cwnd congestion-window",
    "receive_window": "rwnd rwin awnd rcvbuf so-rcvbuf tcp-rmem rmem receive-buffer advertised-window",
    "send_buffer": "sndbuf so-sndbuf tcp-wmem wmem send-window",
    "receive_autotuning": "moderate-rcvbuf tcp-moderate-rcvbuf",
    "min_rto": "rto rto-min minrto tcp-rto-min",
    "max_rto": "rto-max tcp-rto-max",
    "delayed_ack": "delack delayed-acks delayed-acknowledgment ack-delay",
    "dupthresh": "dupacks dupack-threshold tcp-reordering duplicate-ack-threshold",
    "reordering": "reordering-remedy",
    "sack": "tcp-sack selective-acknowledgment",
    "tlp": "tail-loss-probe tcp-early-retrans",
    "rack": "rack-tlp tcp-recovery",
    "frto": "f-rto tcp-frto",
    "prr": "proportional-rate-reduction",
    "hystart": "hystart++ hystartpp hybrid-slow-start",
    "nagle": "tcp-nodelay nodelay",
    "mss": "segment-size maxseg tcp-maxseg",
    "segmentation": "tso gso",
    "ecn": "tcp-ecn accecn",
    "pacing": "paced-sending so-max-pacing-rate",
    "cwnd_validation": "cwv new-cwv congestion-window-validation",
    "idle_restart": "slow-start-after-idle tcp-slow-start-after-idle",
    "syn_retries": "tcp-syn-retries",
    "retries": "tcp-retries2",
    "time_wait": "msl",
    "timestamps": "tcp-timestamps",
    "window_scaling": "tcp-window-scaling wscale",
    "bulk": "ftp greedy iperf long-lived",
    "file": "short-flow transfer-size",
    "paced": "cbr constant-bit-rate",
    "on-off": "onoff",
    "replay": "pcap tcpreplay",
    "request-response": "web http rpc",
    "flow.start": "start-time",
    "flow.stop": "end-time stop-time",
    "flow.count": "parallel flows n-flows",
    "flow.cc": "congestion-control tcp-variant",
    "duration": "simulation-time",
    "seed": "random-seed rng",
    "weighted-round-robin": "round-robin wrr ecmp",
    "lowest-delay": "minrtt min-rtt lowest-rtt",
    "earliest-arrival": "ecf",
    "in-order": "resequencing resequence reorder-buffer",
    "group": "bond bonding lag etherchannel link-aggregation-group",
    "lpi": "eee 802.3az",
    "xor": "parity",
    "reed-solomon": "rs",
    "sliding-rlc": "rlc rlnc",
    "ns3-2018": "ns3 ns-3",
    "ns2-sack1": "ns2 ns-2",
    "windows-7": "win7 windows",
    "bsd44-lite": "bsd 4.4bsd freebsd",
}

SYNONYMS = {synonym: name for name, synonyms in _NAMES.items() for synonym in synonyms.split()}
"""Synonym, as :func:`plain` writes it, → what `anabranch explain` knows: a component, a key, or a path."""


def plain(name: str) -> str:
    """A name without case, and with hyphens for blanks and underscores."""
    return "-".join(name.lower().replace("_", " ").split())


def meant(name: str) -> str | None:
    """What a synonym stands for, by a name or path of ours; ``None`` if it is no synonym."""
    return SYNONYMS.get(plain(name))
