"""Tables of 80 columns: headings wrap without loss, figures stay on one line, excess columns go below."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from anabranch.cli.columns import Column, print_table
from anabranch.files.checkout import shipped_studies
from anabranch.study.parse import load

WIDEST_CELL = "0.985 ± 0.012 (RI 4)"


def printed(first: list[Column], others: list[Column]) -> list[str]:
    file = io.StringIO()
    print_table(Console(file=file, width=80), first, [[column] for column in others])
    return file.getvalue().splitlines()


def columns_of(lines: list[str]) -> list[str]:
    """The headings above the rules, joined column by column."""
    return " ".join(lines).split()


@pytest.mark.parametrize("name", shipped_studies())
def test_the_tables_of_a_study_have_complete_headings(name: str) -> None:
    definition = load(shipped_studies()[name])
    for table in definition.tables:
        heads = [column.title for column in table.columns]
        first = Column("", ["Linux 6.18 as modelled here", "BBR"], is_text=True)
        lines = printed([first], [Column(head, [WIDEST_CELL, "–"]) for head in heads])
        assert max(map(len, lines)) <= 80
        text = "\n".join(lines)
        assert "…" not in text
        assert text.count(WIDEST_CELL) == len(heads)
        words = text.split()
        assert all(word in words for head in heads for word in head.split())


def test_a_table_that_fits_is_not_split() -> None:
    lines = printed([Column("flow", ["a"], is_text=True)], [Column("goodput\nMbit/s", ["1.5"])])
    assert [line.rstrip() for line in lines] == ["       goodput", "flow    Mbit/s", "──────────────", "a          1.5"]


def test_headings_wrap_before_columns_go_below() -> None:
    heads = ["share of the throughput in order"] * 4
    lines = printed([Column("", ["a"], is_text=True)], [Column(head, ["0.5"]) for head in heads])
    assert sum("─" in line for line in lines) == 1
    assert sum("0.5" in line for line in lines) == 1


def test_excess_columns_go_below_with_the_first() -> None:
    lines = printed([Column("name", ["row"], is_text=True)], [Column("figure", ["1" * 30]) for _ in range(3)])
    assert sum(line.startswith("row ") for line in lines) == 2
    assert max(map(len, lines)) <= 80


def test_a_long_label_wraps_and_a_figure_does_not() -> None:
    label = "a label of many words that has no room beside its figure"
    lines = printed([Column("", [label], is_text=True)], [Column("figure", ["1 ± " + "2" * 40])])
    assert any("1 ± " + "2" * 40 in line for line in lines)
    assert " ".join(line.partition("1 ±")[0].strip() for line in lines[-4:]).split()[-3:] == label.split()[-3:]


def test_a_table_without_rows_has_its_heading() -> None:
    assert printed([Column("flow", [], is_text=True)], [])[0].startswith("flow")
