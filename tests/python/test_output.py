from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.output import check_target, read_manifest, whole_directory, write_whole


def test_it_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a.txt").write_text("a")
        assert not target.exists()
    assert sorted(p.name for p in target.iterdir()) == ["a.txt", "anabranch.json"]
    assert [p.name for p in target.parent.iterdir()] == ["out"]


def test_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def stopped_half_way() -> None:
        with whole_directory(target, "run") as aside:
            (aside / "a.txt").write_text("a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_half_way()
    assert list(tmp_path.iterdir()) == []


def test_ours_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for name in ("a", "b"):
        with whole_directory(target, "run") as aside:
            (aside / name).write_text(name)
    assert sorted(p.name for p in target.iterdir()) == ["anabranch.json", "b"]


def test_a_failed_second_time_leaves_the_first(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    with pytest.raises(RuntimeError), whole_directory(target, "run"):
        raise RuntimeError
    assert (target / "a").read_text() == "a"


def test_somebody_elses_is_not_destroyed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(UserError, match="not empty and was not written by anabranch"):
        check_target(tmp_path, "run")
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_nor_what_was_put_beside_ours(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    (target / "notes.md").write_text("mine")
    with pytest.raises(UserError, match=r"files that are not ours \(notes.md\)"):
        check_target(target, "run")


def test_nor_results_of_another_command(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "study"):
        pass
    (target / "x").write_text("x")
    with pytest.raises(UserError, match="results of `anabranch study`"):
        check_target(target, "run")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(UserError, match="is a file; --out needs a directory"):
        check_target(tmp_path / "f", "run")


def test_write_whole_leaves_nothing_aside(tmp_path: Path) -> None:
    write_whole(tmp_path / "p" / "x.json", b"1")
    assert [p.name for p in (tmp_path / "p").iterdir()] == ["x.json"]
    assert read_manifest(tmp_path) is None
