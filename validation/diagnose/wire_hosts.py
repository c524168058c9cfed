"""The hosts at the ends of a path. Each has a keyword per behaviour of its application."""

from __future__ import annotations

import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from diagnose.wire_path import PORT, RECEIVER, SENDER
from kernel import namespaces

SO_MAX_PACING_RATE = 47
"""Constant of socket(7) that Python's module lacks."""
GRACE = 60
"""Seconds that a host remains after its sender has ended; the parent process ends it sooner."""
_BUSY = struct.Struct("=168x3Q")
"""``tcpi_busy_time``, ``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` of tcp(7)'s ``TCP_INFO``, in microseconds."""


def sending(
    connection: socket.socket, end: float, *, size: int = 0, pair: int = 0, pause: float = 0.0, serve: int = 0
) -> None:
    """Send as fast as the network allows, or with pauses, or two writes per answer, or a response to each request."""
    with suppress(OSError):
        while time.monotonic() < end:
            if serve:
                if not connection.recv(65536):
                    return
                connection.sendall(bytes(serve))
            else:
                if pair:
                    connection.sendall(bytes(pair))
                connection.sendall(bytes(size or 65536))
                if pair and not connection.recv(65536):
                    return
                if pause:
                    time.sleep(pause)


def receiving(
    connection: socket.socket,
    end: float,
    *,
    chunk: int = 262144,
    pause: float = 0.0,
    think: float = 0.0,
    want: int = 0,
    answer: int = 0,
) -> None:
    """Read all data, chunk by chunk with pauses; or request responses and think; or answer every `answer` bytes."""
    left = answer
    with suppress(OSError):
        while time.monotonic() < end:
            if want:
                connection.sendall(bytes(200))
                left = want
                while left > 0:
                    got = len(connection.recv(min(left, 65536)))
                    if not got:
                        return
                    left -= got
                time.sleep(think)
            else:
                got = len(connection.recv(chunk))
                if not got:
                    return
                left -= got
                if answer and left <= 0:
                    connection.sendall(b"done")
                    left += answer
                if pause:
                    time.sleep(pause)


def host(pipe: Any, parent: int, options: dict[str, Any], *, is_sender: bool, listens: bool, duration: float) -> None:
    """One host: opens or accepts the connection and runs its application."""
    namespaces.end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    habits = {key: value for key, value in options.items() if not key.startswith("so_")}
    if listens:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _set(listening, options)
        listening.bind((SENDER if is_sender else RECEIVER, PORT))
        listening.listen()
        pipe.send("ready")
        listening.settimeout(duration)
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            pipe.send(None)
            return
    else:
        pipe.recv()
        connection = socket.socket()
        _set(connection, options)
        connection.settimeout(duration)
        try:
            connection.connect((RECEIVER if is_sender else SENDER, PORT))
        except OSError:
            pipe.send(None)
            return
    connection.settimeout(duration + 2)
    end = time.monotonic() + duration
    # The reader continues until the process ends; otherwise its window would close at the end of
    # each run.
    (sending if is_sender else receiving)(connection, end + (0 if is_sender else GRACE), **habits)
    time.sleep(max(0.0, end - time.monotonic()))
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BUSY.size)
        pipe.send(_BUSY.unpack(raw) if len(raw) == _BUSY.size else None)
    except OSError:
        pipe.send(None)
    # Closing would reset a connection with unread data; the parent process ends it.
    time.sleep(GRACE)


def _set(of: socket.socket, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name == "so_rcvbuf":
            of.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, value)
        elif name == "so_sndbuf":
            of.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, value)
        elif name == "so_pacing":
            of.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, value)
        elif name == "so_control":
            of.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, value.encode())
