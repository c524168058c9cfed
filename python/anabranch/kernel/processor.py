"""One processor for a guest: its system calls cost a quarter if all its processes share one."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator

NAME = "anabranch-kernel-cpu"
"""Prefix of the abstract sockets that are held while a guest runs; a processor and a count follow."""
_ROUNDS = 64
"""Largest number of guests counted on one processor."""


@contextlib.contextmanager
def held() -> Iterator[int]:
    """Hold the allowed processor with the fewest guests.

    Guests of other processes are visible by the abstract sockets that they hold. The kernel closes a socket when its
    owner ends in any way.
    """
    allowed = sorted(os.sched_getaffinity(0))
    for turn, processor in itertools.product(range(_ROUNDS), allowed):
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            lock.bind(f"\0{NAME}-{processor}-{turn}")
        except OSError:
            lock.close()
            continue
        with lock:
            yield processor
        return
    yield allowed[0]


@contextlib.contextmanager
def pinned(processor: int) -> Iterator[None]:
    """Restrict the calling thread, and the processes that it starts, to one processor. Other threads are unaffected."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
