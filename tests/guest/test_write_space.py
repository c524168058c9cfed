"""The kernel wakes a writer that a full send buffer has stopped when a third of the buffer is free.

The simulator writes at this time (`Endpoint::write_anew`, `Endpoint::note_write_after_block`).
"""

from __future__ import annotations

import fcntl
import select
import socket
import struct
import time

import pytest

SIOCOUTQ = 0x5411
"""Bytes that are not acknowledged (tcp(7))."""


def outstanding(sender: socket.socket) -> int:
    """The unacknowledged bytes in the kernel."""
    return int(struct.unpack("i", fcntl.ioctl(sender, SIOCOUTQ, bytes(4)))[0])


@pytest.fixture(scope="module", autouse=True)
def loopback() -> None:
    """Bring it up in a new guest: SIOCSIFFLAGS with IFF_UP (netdevice(7))."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))


@pytest.mark.parametrize("size", [1 << 18, 1 << 20, 1 << 22])
def test_a_writer_resumes_when_a_third_is_free(size: int) -> None:
    with socket.socket() as listener, socket.socket() as sender:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
        sender.setblocking(False)
        with receiver:
            try:
                while True:
                    sender.send(bytes(1448))
            except BlockingIOError:
                pass
            time.sleep(0.1)
            full = outstanding(sender)
            writable = select.poll()
            writable.register(sender, select.POLLOUT)
            while not writable.poll(0):
                assert receiver.recv(1448), "everything is read, and it may not write"
                time.sleep(0.0002)
            assert 0.6 < outstanding(sender) / full < 0.75
