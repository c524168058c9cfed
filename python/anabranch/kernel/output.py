"""Output of a guest's programs, as it comes."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_POLL_S = 0.05
"""Seconds of real time between two looks at the files."""
_GRACE_S = 1.0
"""Seconds of virtual time for the last output."""


@contextlib.contextmanager
def passed_on(job: Path, **to: int) -> Iterator[None]:
    """On the host: pass on what the guest prints within the block.

    Args:
        job: The job's folder.
        to: Descriptors by the file's name, for example ``err=2``.
    """
    is_over = threading.Event()

    def follow() -> None:
        read = dict.fromkeys(to, 0)
        while True:
            is_last = is_over.wait(_POLL_S)
            for name, descriptor in to.items():
                with contextlib.suppress(FileNotFoundError), (job / name).open("rb") as file:
                    file.seek(read[name])
                    while part := file.read(1 << 16):
                        read[name] += len(part)
                        _write(descriptor, part)
            if is_last:
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def piped(*descriptors: int) -> Iterator[None]:
    """In the guest: make descriptors pipes within the block.

    A program that opens ``/dev/stderr`` would empty a file. The process must have one thread.
    """
    children = []
    for descriptor in descriptors:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(reader, 0)
            os.dup2(descriptor, 1)
            os.closerange(2, writer + 1)
            while part := os.read(0, 1 << 16):
                _write(1, part)
            os._exit(0)
        os.close(reader)
        os.dup2(writer, descriptor)
        os.close(writer)
        children.append(child)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in descriptors:
            os.dup2(nowhere, descriptor)
        until = time.monotonic() + _GRACE_S
        while children and time.monotonic() < until:
            children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
            time.sleep(0.001)


def _write(descriptor: int, part: bytes) -> None:
    """Write all of it; nothing if nobody reads any more."""
    with contextlib.suppress(BrokenPipeError):
        while part:
            part = part[os.write(descriptor, part) :]
