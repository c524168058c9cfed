"""Run the notebooks of the documentation and write their outputs.

    python tools/run_notebook.py            runs docs/notebooks/*.ipynb
    python tools/run_notebook.py FILE...    runs these

Cells run in one namespace, in order, in this process; Jupyter is not needed.
`tests/tools/test_notebook.py` runs them again and compares the texts.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "docs" / "notebooks"

Cell = dict[str, Any]


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    cells = []
    with _elsewhere():
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                cells.append(cell)
                continue
            count += 1
            outputs = [*_outputs("".join(cell["source"]), names, count)]
            cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


def texts(notebook: dict[str, Any]) -> list[str]:
    """Return the text that each cell printed and returned; figures have no text."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs]


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Run in a new directory and without windows."""
    here, backend = Path.cwd(), mpl.get_backend()
    mpl.use("agg")
    # Figures of the caller are not outputs of a cell.
    pyplot.close("all")
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            yield
    finally:
        os.chdir(here)
        mpl.use(backend)


def _outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {count}>", "exec"), names)  # noqa: S102 - our own notebook
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), names)  # noqa: S307 - likewise
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    # A semicolon suppresses the value, as in Jupyter.
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
    yield from _figures()


def _figures() -> Iterator[dict[str, Any]]:
    for number in pyplot.get_fignums():
        drawn = io.BytesIO()
        pyplot.figure(number).savefig(drawn, format="png", dpi=100, metadata={"Software": None})
        picture = base64.b64encode(drawn.getvalue()).decode("ascii")
        yield {"data": {"image/png": picture}, "metadata": {}, "output_type": "display_data"}
    pyplot.close("all")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the named notebooks, or all of them."""
    parser = argparse.ArgumentParser(description="Run notebooks and write their outputs.")
    parser.add_argument("files", nargs="*", type=Path, help="notebooks; those of the documentation when left out")
    for file in parser.parse_args().files or sorted(NOTEBOOKS.glob("*.ipynb")):
        done = run(json.loads(file.read_text("utf-8")))
        file.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(file)


if __name__ == "__main__":
    main()
