"""Tables in plain Python compared with polars, which reads them through the Arrow interface."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch._engine import ArrowTable
from anabranch.errors import UserError
from anabranch.result.table import Table, column_of, joined
from anabranch.result.table_file import csv_lines, read_csv, read_table, write_table

DATA = Path(__file__).parent / "data"

TEXTS = st.none() | st.text('ab é→\n",', max_size=20)
NUMBERS = st.none() | st.floats(allow_nan=False)
WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
FLAGS = st.none() | st.booleans()
# The first example imports polars.
PATIENT = settings(deadline=None)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(0, 12))
    kinds = {"text": TEXTS, "f8": NUMBERS, "i8": WHOLE, "?": FLAGS}
    return Table({
        kind: column_of(draw(st.lists(values, min_size=rows, max_size=rows)), kind) for kind, values in kinds.items()
    })  # fmt: skip


@given(tables())
@PATIENT
def test_polars_reads_the_values_that_python_has(table: Table) -> None:
    frame = pl.DataFrame(table)
    assert frame.to_dicts() == table.to_dicts()
    assert (frame.columns, frame.height) == (table.columns, table.height)
    assert Table.of_any(frame).to_dict() == table.to_dict()


@given(tables())
@PATIENT
def test_a_table_survives_pickling_and_storage(table: Table) -> None:
    for again in (pickle.loads(pickle.dumps(table)), Table.from_bytes(table.to_bytes())):  # noqa: S301 - our own
        assert again.to_dict() == table.to_dict()


@given(tables())
@PATIENT
def test_groups_match_polars(table: Table) -> None:
    """Detects groups in another order, nulls merged with a value, and rows lost."""
    names = ("text", "?", "i8")
    ours = [(key, part["f8"]) for key, part in table.parts(*names)]
    theirs = pl.DataFrame(table).group_by(names, maintain_order=True).agg("f8").rows()
    assert [(*key, values) for key, values in ours] == theirs


@given(tables(), tables())
@PATIENT
def test_joined_tables_are_concatenated(one: Table, two: Table) -> None:
    assert joined([one, two]).to_dicts() == [*one.to_dicts(), *two.to_dicts()]
    part = two.select("f8")
    assert joined([one, part])["text"] == [*one["text"], *[None] * two.height]


@given(tables())
@PATIENT
def test_csv_is_read_back_unchanged(table: Table) -> None:
    # Without text: CSV does not distinguish an empty text from a missing one.
    kept = table.select("f8", "i8", "?")
    content = b"".join(csv_lines(kept))
    assert content.count(b"\n") == kept.height + 1
    frame = pl.read_csv(content, schema_overrides={"f8": pl.Float64, "i8": pl.Int64, "?": pl.Boolean})
    assert frame.to_dicts() == kept.to_dicts()


def test_masks_exclude_rows_without_a_value() -> None:
    table = Table.of({"flow": ["a", None, "b", "a"], "late": [True, None, False, None], "cwnd": [1, None, 3, 4]})
    assert table.is_in("flow", "a", "c").tolist() == [True, False, False, True]
    assert table.flags("late").tolist() == [True, False, False, False]
    assert table.is_in("cwnd", 0, 3).tolist() == [False, False, True, False]
    assert np.nan_to_num(table.numbers("cwnd"), nan=-1).tolist() == [1, -1, 3, 4]
    assert table.where(table.has("flow"))["cwnd"] == [1, 3, 4]


def test_sorting_is_stable() -> None:
    table = Table.of({"time_s": [0.2, 0.1, 0.2, 0.1], "row": [0, 1, 2, 3]})
    assert table.sort("time_s")["row"] == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2.5, None], [1.0, 2.5, None]), ([None, None], [None, None]), ([2**70, 1], [float(2**70), 1.0]),
     ([[1, 2], None], [[1, 2], None]), ([], [])],
)  # fmt: skip
def test_a_column_has_one_kind(values: list[Any], expected: list[Any]) -> None:
    assert column_of(values).to_list() == expected


def test_lists_become_json_text_in_arrow() -> None:
    assert pl.DataFrame(Table.of({"packets": [[1, 2], None]})).to_dict(as_series=False) == {"packets": ["[1, 2]", None]}


def test_a_missing_column_is_named() -> None:
    with pytest.raises(UserError, match='did you mean "cwnd_packets"'):
        Table.of({"cwnd_packets": [1.0]}).column("cwmd_packets")


@pytest.mark.parametrize(
    "column",
    [("a", "f8", b"\0" * 7, None, None), ("a", "f8", b"\0" * 8, b"\1\1", None), ("a", "text", b"\1\0\0\0", None, ["x"]),
     ("a", "c8", b"", None, None), ("a", "text", b"", None, None)],
)  # fmt: skip
def test_the_engine_refuses_bytes_that_are_not_a_column(column: Any) -> None:
    with pytest.raises(ValueError, match='column "a" is not of its kind'):
        ArrowTable([column])


@pytest.mark.parametrize("content", [b"", b"[]]", b"[1]", b'[["a","f8","!",null,null]]', b'[["a"]]'])
def test_stored_bytes_that_are_not_a_table_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are of whatever found it
        Table.from_bytes(content)


def test_every_table_of_a_run_is_the_same_in_both_forms() -> None:
    scenario = Scenario.from_file(DATA / "reordering.toml").set("duration", "4 s")
    scenario = scenario.set("link.bottleneck.forward.impair", [{"kind": "bernoulli-loss", "rate": 0.02}])
    result = scenario.run(samples_ms=10, packets=True)
    for name in ("flows", "links", "samples", "link_samples", "packets", "window_events", "retransmissions"):
        plain, frame = result.plain(name), result.frame(name)
        assert plain.height > 0
        assert frame.to_dicts() == plain.to_dicts()
        assert pl.DataFrame(plain).schema == frame.schema
    parts = list(result.plain_parts(["flow", "sent_s"], 100))
    assert joined(parts).to_dict() == result.plain("packets").select("flow", "sent_s").to_dict()


def test_numbers_distinguish_nan_from_missing() -> None:
    column = column_of(np.array([1.0, math.nan]))
    assert column.to_list() == [1.0, None]


def test_a_truncated_csv_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.result.table_file.is_installed", lambda _name: False)
    table = Table.of({"flow": ["1", None], "time_s": [0.5, 1.0], "late": [True, None]})
    write_table(tmp_path, "samples", table)
    path = tmp_path / "samples.csv"
    assert read_csv(path, "again", ["flow"]).to_dict() == table.to_dict()
    found = read_table(tmp_path, "samples", "again")
    assert found is not None
    assert found["time_s"] == [0.5, 1.0]
    whole = path.read_bytes()
    for cut in (whole[:-1], whole + b"1\n", b"", b"\xff\n"):
        path.write_bytes(cut)
        with pytest.raises(UserError, match=r"samples\.csv is not a whole CSV table"):
            read_table(tmp_path, "samples", "again")


def test_parquet_without_polars_names_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "samples.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr("anabranch.result.table_file.is_installed", lambda _name: False)
    with pytest.raises(UserError, match=r"reading Parquet needs polars.*\n  pip install 'anabranch\[tables\]'"):
        read_table(tmp_path, "samples", "again")
