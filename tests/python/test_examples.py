"""Examples of docstrings and documents run, give their printed results, and pass type checkers."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[2]


MODULES = ("anabranch", "anabranch.builders", "anabranch.result.result", "anabranch.scenario", "anabranch.sweep.sweep")

SIGNATURES = "docs/reference/python.md"
"""Its blocks are signatures; its examples are in the docstrings."""

BLOCK = re.compile(r"^```python(?: title=\"[^\"]*\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def docstrings() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]


def snippets() -> dict[str, str]:
    """Every Python example, by file and number."""
    pages = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    found = {
        f"{page.relative_to(ROOT)}:{i}": text
        for page in pages
        if page.relative_to(ROOT).as_posix() != SIGNATURES
        for i, text in enumerate(BLOCK.findall(page.read_text("utf-8")))
    }
    found |= {p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in sorted((ROOT / "examples").rglob("*.py"))}
    for file in sorted((ROOT / "docs").rglob("*.ipynb")):
        cells = json.loads(file.read_text("utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        found[file.relative_to(ROOT).as_posix()] = code
    for test in docstrings():
        code = "".join(example.source for example in test.examples)
        # A docstring's example uses the names of its module.
        home = next(name for name in sorted(MODULES, reverse=True) if test.name.startswith(name))
        found[test.name] = f"from {home} import *\n{code}"
    return found


@pytest.mark.parametrize("test", docstrings(), ids=lambda test: test.name)
def test_an_example_gives_its_printed_result(
    test: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "tests" / "python" / "data" / "reordering.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed = doctest.DocTestRunner(optionflags=flags).run(test, out=said.append).failed
    pyplot.close("all")
    assert failed == 0, "".join(said)


WRONG = "from anabranch import Scenario\nScenario(duration=3).run().plott()\n"
OPTIONAL = """
from anabranch import Scenario

result = Scenario.from_file("s.toml").run()
half: float = result.flows["main"]["goodput_mbit_s"] / 2
whole: float = result["goodput"]
rtt: float = result.flows["main"]["mean_srtt_ms"]
live: float = Scenario.from_file("s.toml").run_live().flows["main"]["goodput_mbit_s"]
"""


def test_type_checkers_accept_every_example_and_detect_wrong_types(tmp_path: Path) -> None:
    """Optional figures are declared: the goodput of a simulated run is always a number, that of a live run is not."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    found = snippets()
    assert len(found) > len(docstrings()) > len(MODULES)
    for i, (name, text) in enumerate(found.items()):
        (tmp_path / f"example_{i}.py").write_text(f"# {name}\n{text}", "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    (tmp_path / "optional.py").write_text(OPTIONAL, "utf-8")
    errors = [line for line in check(tmp_path).stdout.splitlines() if ": error: " in line]
    places = "\n".join(f"example_{i}.py: {name}" for i, name in enumerate(found))
    others = [line for line in errors if "wrong.py:" not in line and "optional.py:" not in line]
    assert not others, "\n".join([*others, places])
    assert sum("wrong.py:" in line for line in errors) >= 2
    optional = [line for line in errors if "optional.py:" in line]
    assert [line.split(":")[1] for line in optional] == ["7", "8"], optional
    assert all("float | None" in line for line in optional)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Mypy's answer, with the cache of `make lint`, which has the same options."""
    files = [str(file) for file in sorted(folder.glob("*.py"))]
    options = [
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--no-warn-unused-configs",
    ]
    return subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "mypy", *options, *files], cwd=ROOT, capture_output=True, text=True, check=False
    )
