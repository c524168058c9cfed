"""The check of import circles finds planted ones, and none inside a folder."""

from pathlib import Path

import check_circles


def circles(tmp_path: Path, **files: str) -> list[list[str]]:
    for name, text in files.items():
        path = tmp_path / (name.replace("__", "/") + ".rs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_circles.circles(check_circles.imports(tmp_path))


def test_mutual_imports_of_two_modules_are_found(tmp_path: Path) -> None:
    assert circles(tmp_path, a="use crate::b::{self, X};", b="use super::a::Y;") == [["a", "b"]]


def test_a_circle_through_three_folders_is_found(tmp_path: Path) -> None:
    found = circles(
        tmp_path, a__x="use super::super::b::X;", b__y="use crate::{c::{Y, Z}, d};", c="fn f() -> crate::a::X {}", d=""
    )
    assert found == [["a", "b", "c"]]


def test_modules_of_one_folder_may_import_each_other(tmp_path: Path) -> None:
    assert circles(tmp_path, a__x="use super::y::X;", a__y="use super::x::Y;", b="use crate::a::x::Y;") == []


def test_tests_inside_a_file_belong_to_that_file(tmp_path: Path) -> None:
    assert circles(tmp_path, a="use crate::b::X;", b="mod tests {\n    use super::a;\n}") == []
