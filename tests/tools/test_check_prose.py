"""Expressions that the language rules replace are counted, and their number may only fall."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_prose

RUST = """//! What leaves is told to those that ask.
//!
//! ```
//! // what stands behind
//! ```
/// The next segment.
pub fn next() -> &'static str {
    "what stands behind"
}

#[test]
fn what_comes_late_is_told() {}
"""
PYTHON = '''"""The result.

What comes behind it.
"""

NAME = "what stands behind"  # nobody besides


def test_what_is_told() -> None:
    """Detects a loss."""
'''
MARKDOWN = """# What it is for

Segments are counted, `what stands behind` is code.

```sh
echo what is behind
```
"""


@pytest.mark.parametrize(("name", "text", "found"), [("a.rs", RUST, 5), ("a.py", PYTHON, 6), ("a.md", MARKDOWN, 1)])
def test_only_prose_counts(tmp_path: Path, name: str, text: str, found: int) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert check_prose.count([path]).found == found


def test_a_question_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("What limits the flow? Cwnd does.\n", "utf-8")
    assert check_prose.count([path]).found == 0


@pytest.mark.parametrize(("limit", "status"), [(1000.0, 0), (10.0, 1)])
def test_an_increase_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit: float, status: int
) -> None:
    (tmp_path / "README.md").write_text("What is behind it.\n", "utf-8")
    limits = tmp_path / "prose.toml"
    limits.write_text(f'"pages" = {limit}\n', "utf-8")
    monkeypatch.setattr(check_prose, "LIMITS", limits)
    monkeypatch.setattr("sys.argv", ["check_prose.py", "--root", str(tmp_path)])
    assert check_prose.main() == status
    assert ("pages: 500.0" in capsys.readouterr().err) == bool(status)
