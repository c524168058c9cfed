"""Output of `anabranch study --engine live` for each claim."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from anabranch.cli.study import _print_live
from anabranch.study.live import LiveStudyResult


def judged(verdict: str, measured: str, why: str = "") -> Any:
    claim = SimpleNamespace(id="R1", accept_if="both within 1 % of 9.54455")
    return SimpleNamespace(
        claim=claim,
        verdict=verdict,
        plain=SimpleNamespace(measured=measured),
        why=why,
        control=SimpleNamespace(word="not reproduced"),
    )


def test_both_engines_of_a_claim_fit_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    pair = judged("reproduced", "cubic 9.5 Mbit/s"), judged("not reproduced", "cubic 7.5 Mbit/s", "too slow " * 20)
    result = SimpleNamespace(
        definition=SimpleNamespace(title="A study", about="About it. " * 20),
        claims=[pair],
        tables=[],
        engine="live",
        audit=SimpleNamespace(runs=3, tainted=1, without_result=0, seconds=4.0, reasons=Counter({"late": 1})),
    )
    _print_live(cast("LiveStudyResult", result))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert "     simulator     reproduced: cubic 9.5 Mbit/s" in lines
    assert "     live          not reproduced: cubic 7.5 Mbit/s" in lines
    assert "     control       not reproduced" in lines
    assert lines[-1] == "tainted, 1 times: late"
