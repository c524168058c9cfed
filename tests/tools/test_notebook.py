"""The notebooks of the documentation reproduce their outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import run_notebook

FILES = sorted(run_notebook.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_notebook_reproduces_its_outputs(file: Path) -> None:
    shown = json.loads(file.read_text("utf-8"))
    made = run_notebook.run(shown)
    assert run_notebook.texts(made) == run_notebook.texts(shown), "run tools/run_notebook.py"
    assert [kinds(cell) for cell in made["cells"]] == [kinds(cell) for cell in shown["cells"]]


def kinds(cell: dict[str, Any]) -> list[list[str]]:
    return [sorted(output.get("data", [])) for output in cell.get("outputs", [])]


def test_there_is_a_notebook_with_figures() -> None:
    assert any("image/png" in file.read_text("utf-8") for file in FILES)


def notebook(*sources: str) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": [source]} for source in sources]}


def test_cells_share_names_and_show_their_last_value() -> None:
    made = run_notebook.run(notebook("a = 1\nprint('told')", "a + 1", "a = 2"))
    assert run_notebook.texts(made) == ["told\n", "2"]
    assert [cell["execution_count"] for cell in made["cells"]] == [1, 2, 3]


def test_a_failing_cell_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run_notebook.run(notebook("1 / 0"))
