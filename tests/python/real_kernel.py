"""A built kernel in virtual time, for tests of whole commands."""

from __future__ import annotations

import os

import pytest

from anabranch.errors import UserError
from anabranch.kernel import images
from anabranch.kernel.images import Image

MISSING = "no kernel is built that could run in virtual time; type: make kernel"


def _kernel() -> Image | None:
    try:
        return images.chosen()
    except UserError:
        return None


KERNEL = _kernel()
IS_REQUIRED = os.environ.get("ANABRANCH_KERNEL_TESTS") == "required"
needs_kernel = pytest.mark.skipif(KERNEL is None and not IS_REQUIRED, reason=MISSING)
"""Skips tests if no kernel is built. With ``ANABRANCH_KERNEL_TESTS=required`` they fail instead."""


def kernel() -> Image:
    """The kernel of these tests."""
    assert KERNEL is not None, MISSING
    return KERNEL
