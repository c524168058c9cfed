"""``TCP_INFO`` of a socket (tcp(7)), with the fields used here."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

_FIXED = struct.Struct("=8B24I2Q2Q6I")
_SSTHRESH_UNSET = 0x7FFFFFFF


@dataclass(frozen=True)
class Sample:
    """One reading."""

    at: float
    """Seconds since the flow started."""
    state: int
    """State of congestion control: open 0, disorder 1, CWR 2, recovery 3, loss 4."""
    cwnd: int
    ssthresh: int
    """-1 until it is set."""
    reordering: int
    srtt_ms: float
    min_rtt_ms: float
    unacked: int
    sacked: int
    lost: int
    retransmitted: int
    """Total packets retransmitted."""


def read(connection: socket.socket, at: float) -> Sample:
    """Read a socket's figures now, `at` seconds after the start."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _FIXED.size)
    fields = _FIXED.unpack(raw)
    words, tail = fields[8:32], fields[36:]
    return Sample(
        at=round(at, 4),
        state=fields[1],
        cwnd=words[18],
        ssthresh=-1 if words[17] == _SSTHRESH_UNSET else words[17],
        reordering=words[20],
        srtt_ms=words[15] / 1e3,
        min_rtt_ms=tail[3] / 1e3,
        unacked=words[4],
        sacked=words[5],
        lost=words[6],
        retransmitted=words[23],
    )
