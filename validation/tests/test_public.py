"""The list of public captures, and the invariants that their diagnoses must keep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diagnose.public import Capture, listed, tally

PUBLIC = Path(os.environ.get("ANABRANCH_PUBLIC_CAPTURES", "missing"))


def test_each_listed_capture_is_found_by_its_commit_and_content() -> None:
    captures = listed()
    assert len(captures) > 4000
    for capture in captures:
        assert capture.repository.count("/") == 1
        assert (len(capture.commit), len(capture.sha256)) == (40, 64)
    assert len({(one.repository, one.path) for one in captures}) == len(captures)


def test_a_file_with_another_content_is_missing(tmp_path: Path) -> None:
    capture = Capture("owner/name", "0" * 40, "a.pcap", "0" * 64)
    capture.place(tmp_path).parent.mkdir()
    capture.place(tmp_path).write_bytes(b"another")
    found = tally([capture], tmp_path)
    assert (found.missing, found.read) == (1, 0)


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="ANABRANCH_PUBLIC_CAPTURES names no folder of public captures")
def test_public_captures_break_no_invariant() -> None:
    found = tally(listed(), PUBLIC)
    assert (found.crashes, found.broken) == ([], [])
    assert found.read > 4000
