"""The mark of a control in Python, by which stored runs are found again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONTROL = """from anabranch import CongestionControl
from {helper} import GROW

class Mine(CongestionControl):
    name = "mine"

    def on_ack(self, ack):
        self.cwnd += GROW
"""


def mark(folder: Path) -> str:
    code = "import sys; from anabranch.evaluate.subject import find; print(find(sys.argv[1]).mark)"
    words = [sys.executable, "-c", code, "mine_of_mark.py:Mine"]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def test_a_change_in_an_imported_module_changes_the_mark(tmp_path: Path) -> None:
    (tmp_path / "mine_of_mark.py").write_text(CONTROL.format(helper="helper_of_mark"), encoding="utf-8")
    helper = tmp_path / "helper_of_mark.py"
    helper.write_text("GROW = 1.0\n", encoding="utf-8")
    first = mark(tmp_path)
    assert mark(tmp_path) == first
    helper.write_text("GROW = 2.0\n", encoding="utf-8")
    assert mark(tmp_path) != first
