"""The packets of an interface, from a raw socket, with times that do not depend on settings of the system's clock."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from pathlib import Path
from typing import Protocol

from anabranch.errors import RunFailedError, UserError, nearest, require_linux

SNAP = 160
"""Octets of each packet that are kept: link, network and TCP headers."""
_ETH_P_ALL = 3
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_OUTGOING = 4
_BUFFER = 32 << 20
_LINK_TYPES = {1: 1, 772: 1, 65534: 101}
"""Hardware types of Linux (if_arp.h) and the link types of captures: Ethernet, loopback, raw IP."""
_LOOPBACK = 772
_TOLERANCE_NS = 1_000_000
"""Tolerance of a stamp later than the time of its reading: two clocks cannot be read simultaneously."""


class Taker(Protocol):
    """Takes packets: a ring."""

    def add(self, nanoseconds: int, length: int, captured: bytes | memoryview) -> None:
        """Take a packet: its time, its length, and the octets that are kept."""


class PacketClock:
    """Times of packets, independent of settings of the system's clock.

    The kernel stamps packets with the system's clock. CLOCK_BOOTTIME is monotonic and also counts
    while the machine sleeps. The difference of the two changes only when the system's clock is set:
    adjustments of the rate apply to both. The resulting times are the system's clock as if it had
    not been set.
    """

    def __init__(self) -> None:
        low, high = self._difference()
        self._difference_ns = self._first_ns = (low + high) // 2
        self._before_ns = self._difference_ns
        """The difference before the clock was set; packets that waited in the socket were stamped with it."""
        self._now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def update(self) -> None:
        """Detect a setting of the clock; call it before stamps are read."""
        low, high = self._difference()
        self._now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if not low <= self._difference_ns <= high:
            self._before_ns, self._difference_ns = self._difference_ns, (low + high) // 2

    def time(self, stamp_ns: int | None) -> int:
        """The time of a packet in nanoseconds; the current time for a packet without a stamp.

        The stamp is from before or after a setting of the clock, so both differences give a time.
        The result is the later of these that is not in the future.
        """
        latest = self._now_ns + _TOLERANCE_NS
        if stamp_ns is None:
            return self._now_ns + self._first_ns
        times = (stamp_ns - self._difference_ns, stamp_ns - self._before_ns)
        return max((one for one in times if one <= latest), default=self._now_ns) + self._first_ns

    @staticmethod
    def _difference() -> tuple[int, int]:
        """Bounds of the difference: the closest of three readings."""
        readings = []
        for _ in range(3):
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            shown = time.time_ns()
            after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            readings.append((shown - after, shown - before))
        return min(readings, key=lambda bounds: bounds[1] - bounds[0])


class Interface:
    """A raw socket at an interface, which receives the packets of both directions.

    Raises:
        UserError: There is no such interface, or its frames cannot be read.
        RunFailedError: The user may not capture, or the system refuses otherwise.
    """

    def __init__(self, name: str) -> None:
        require_linux("capturing at an interface")
        self.name = name
        self._clock = PacketClock()
        self._buffer = bytearray(SNAP)
        self.missed = 0
        """Packets for which the socket had no room."""
        with contextlib.ExitStack() as opened:
            try:
                kind = _hardware_type(name)
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
                opened.callback(self._socket.close)
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                with contextlib.suppress(PermissionError):
                    self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
                self._socket.bind((name, 0))
                self._socket.setblocking(False)
            except PermissionError:
                raise RunFailedError(
                    f"--follow {name}: capturing is not permitted; it takes CAP_NET_RAW (run it as root)"
                ) from None
            except OSError as error:
                raise self._failed(error) from None
            opened.pop_all()
        self.link_type = _LINK_TYPES[kind]
        # The loopback interface delivers each packet twice: on sending, and on arrival.
        self._is_loopback = kind == _LOOPBACK

    def read(self, ring: Taker, wait_s: float, wake: int) -> None:
        """Wait for packets, and add all available ones; return at once if the descriptor ``wake`` is readable.

        Raises:
            RunFailedError: The interface is gone or down.
        """
        try:
            if self._socket.fileno() not in select.select([self._socket.fileno(), wake], [], [], wait_s)[0]:
                return
            self._clock.update()
            for _ in range(4096):
                length, control, _, address = self._socket.recvmsg_into([self._buffer], 64, socket.MSG_TRUNC)
                if self._is_loopback and address[2] == _PACKET_OUTGOING:
                    continue
                captured = memoryview(self._buffer)[: min(length, SNAP)]
                ring.add(self._clock.time(_stamp(control)), length, captured)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._failed(error) from None

    def statistics(self) -> int:
        """Packets missed since the start."""
        # The interface may be gone.
        with contextlib.suppress(OSError):
            found = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
            # Reading sets the kernel's counters to zero.
            self.missed += struct.unpack("II", found)[1]
        return self.missed

    def _failed(self, error: OSError) -> RunFailedError:
        if error.errno in (errno.ENETDOWN, errno.ENODEV, errno.ENXIO, errno.ENOENT):
            return RunFailedError(f"--follow {self.name}: the interface is gone or down")
        return RunFailedError(f"--follow {self.name}: {error.strerror or error}")

    def close(self) -> None:
        """Stop capturing."""
        self._socket.close()


def _hardware_type(name: str) -> int:
    """The hardware type of an interface.

    Raises:
        UserError: There is no such interface, or its frames cannot be read.
        OSError: The system refuses to say.
    """
    present = sorted(other for _, other in socket.if_nameindex())
    if name not in present:
        hint = nearest(name, present) or f"there are: {', '.join(present)}"
        raise UserError(f"--follow {name}: there is no such interface", hint=hint)
    kind = int((Path("/sys/class/net") / name / "type").read_text(encoding="ascii"))
    if kind not in _LINK_TYPES:
        raise UserError(f"--follow {name}: frames of hardware type {kind} are not read", hint="expected Ethernet or IP")
    return kind


def _stamp(control: list[tuple[int, int, bytes]]) -> int | None:
    """Time at which the kernel received the packet, by the system's clock, in ns; ``None`` without a stamp."""
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(value) >= 16:
            seconds, nanoseconds = struct.unpack_from("qq", value)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return None
