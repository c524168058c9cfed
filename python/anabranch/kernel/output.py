"""Passes on the output of a guest's programs as it is written."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_POLL_S = 0.05
"""Seconds of real time between two polls of the files."""


@contextlib.contextmanager
def passed_on(job: Path, **to: int) -> Iterator[None]:
    """On the host: pass on the guest's output within the block.

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


def _write(descriptor: int, part: bytes) -> None:
    """Write all of ``part``; stop if the reader has closed the pipe."""
    with contextlib.suppress(BrokenPipeError):
        while part:
            part = part[os.write(descriptor, part) :]
