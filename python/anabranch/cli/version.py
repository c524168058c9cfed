"""``anabranch --version``."""

from __future__ import annotations

import sys


def print_version() -> None:
    """Print name and version."""
    from anabranch import _engine

    sys.stdout.write(f"anabranch {_engine.version()}\n")
    sys.stdout.flush()
