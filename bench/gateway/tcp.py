"""A transfer by TCP or Multipath TCP between two namespaces by load.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from network import ended, inside, run

LOAD = Path(__file__).with_name("load.py")


@contextmanager
def sender(space: str, address: str, control: str, protocol: str = "tcp") -> Iterator[None]:
    """Serve transfers within the block."""
    words = inside(space, sys.executable, str(LOAD), "send", protocol, address, control)
    with ended(subprocess.Popen(words, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield


def receive(space: str, address: str, flows: int, amount: str, protocol: str = "tcp") -> float:
    """Return the goodput in Mbit/s of a transfer."""
    return float(run(*inside(space, sys.executable, str(LOAD), "receive", protocol, address, str(flows), amount)))
