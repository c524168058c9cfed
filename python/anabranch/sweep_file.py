"""Reads the directory of a sweep again: ``sweep.json`` and ``runs.parquet``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.files import MAX_RESULT_BYTES, NoSuchFileError, read_bytes, read_json
from anabranch.points import SWEEP_FILE
from anabranch.sweep import FORMAT, SweepResult, SweptScenario

_AGAIN = "call the same `anabranch sweep … --out` again: it goes on where it stopped"


def read_sweep(directory: Path) -> SweepResult:
    """The finished sweep in ``directory``.

    Raises:
        UserError: There is none, or it has been changed.
    """
    import polars as pl

    try:
        about = _about(directory / SWEEP_FILE)
        content = read_bytes(directory / "runs.parquet", most=MAX_RESULT_BYTES)
    except NoSuchFileError as error:
        raise UserError(f"{error.message}; the sweep is not finished", hint=_AGAIN) from None
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError:
        raise UserError(f"{directory / 'runs.parquet'} is not a whole Parquet table", hint=_AGAIN) from None
    axes = list(about["axes"])
    missing = [name for name in (*axes, "seed", "digest") if name not in frame.columns]
    if missing:
        raise UserError(f"{directory / 'runs.parquet'} has no column {missing[0]}, which is expected", hint=_AGAIN)
    return SweepResult(axes, frame, SweptScenario(about["scenario"], about["set"], about["resolved_scenario"]))


def _about(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict) or content.get("kind") != "sweep":
        raise UserError(f"{path} does not describe a sweep")
    if content.get("format") != FORMAT:
        raise UserError(f"{path} has format {content.get('format')}; format {FORMAT} was expected")
    for key, kind in (("scenario", str), ("set", list), ("axes", dict), ("resolved_scenario", dict)):
        if not isinstance(content.get(key), kind):
            raise UserError(f'{path} lacks "{key}"', hint=_AGAIN)
    return content
