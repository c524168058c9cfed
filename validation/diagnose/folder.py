"""The working directory, in which a guest's programs may write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """Change to a folder for a time."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
