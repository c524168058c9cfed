"""One processor for a guest: a system call inside costs a quarter where all processes of the guest share one."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator

NAME = "anabranch-kernel-cpu"
"""Abstract sockets of this name, a processor and a count are held while a guest runs."""
_ROUNDS = 64
"""Guests on one processor, at most, that are counted."""


@contextlib.contextmanager
def held() -> Iterator[int]:
    """Hold the processor with the fewest guests, of those that the caller may use.

    Guests of other processes are seen by the abstract sockets that they hold; a socket goes with its owner, however
    that ends.
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
    """Let the calling thread, and processes that it starts, run on one processor; other threads are not changed."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
