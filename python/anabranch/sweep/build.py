"""The build of the engine that makes the results: its version does not change with every change of its source."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def fingerprint() -> str:
    """The version, and a hash of the compiled engine."""
    from anabranch import _engine

    content = Path(str(_engine.__file__)).read_bytes()
    return f"{_engine.version()}+{hashlib.sha256(content).hexdigest()[:24]}"
