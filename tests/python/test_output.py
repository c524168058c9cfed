from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anabranch import _engine
from anabranch.errors import UserError
from anabranch.output import check_parent, check_target, read_manifest, whole_directory, write_whole

from .command import Call


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


def test_a_symbolic_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "disk" / "results").mkdir(parents=True)
    link = tmp_path / "out"
    link.symlink_to(tmp_path / "disk" / "results")
    for name in ("a", "b"):
        with whole_directory(link, "run") as aside:
            (aside / name).write_text(name)
    assert link.is_symlink()
    assert sorted(p.name for p in (tmp_path / "disk" / "results").iterdir()) == ["anabranch.json", "b"]
    assert [p.name for p in (tmp_path / "disk").iterdir()] == ["results"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "out"]


def test_a_symbolic_link_to_nothing_is_refused(anabranch: Call, tmp_path: Path, scenario_file: Path) -> None:
    link = tmp_path / "out"
    link.symlink_to("nowhere")
    done = anabranch("run", scenario_file, "--out", link)
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"error: --out {link} is a symbolic link to nowhere, which does not exist\n"
        "  make that directory, or give --out another place\n"
    )
    assert link.is_symlink()


def test_a_foreign_tree_is_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usr" / "share").mkdir(parents=True)

    def walk(*_: object) -> None:
        raise AssertionError("the tree is walked")

    monkeypatch.setattr(Path, "rglob", walk)
    monkeypatch.setattr(os, "walk", walk)
    with pytest.raises(UserError, match="not empty and was not written by anabranch"):
        check_target(tmp_path, "run")
    with pytest.raises(UserError, match="not empty and was not written by anabranch"):
        check_target(Path("/"), "run")


def test_what_lies_deep_among_ours_is_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "figures").mkdir()
        (aside / "figures" / "a").write_text("a")
    (target / "figures" / "mine").write_text("mine")
    with pytest.raises(UserError, match=r"files that are not ours \(figures/mine\)"):
        check_target(target, "run")


def test_an_empty_name_is_no_directory(anabranch: Call, scenario_file: Path) -> None:
    for command in (("run", scenario_file), ("sweep", scenario_file), ("study", "fairness")):
        done = anabranch(*command, "--out", "")
        assert (done.status, done.out) == (2, "")
        assert "--out" in done.err
        assert "it is empty; a directory was expected" in done.err


def test_several_studies_are_not_written_among_results(anabranch: Call, tmp_path: Path, sample_study: Path) -> None:
    out = tmp_path / "out"
    with whole_directory(out, "run"):
        pass
    done = anabranch("study", sample_study, sample_study, "--quick", "--out", out)
    assert (done.status, done.out) == (2, "")
    assert f"{out} holds the results of `anabranch run`; it is left as it is" in done.err
    assert [p.name for p in out.iterdir()] == ["anabranch.json"]
    check_parent(tmp_path)


@pytest.mark.parametrize("command", ["run", "sweep", "study"])
def test_a_full_disk_is_one_line(command: str, tmp_path: Path, scenario_file: Path, sample_study: Path) -> None:
    what = [str(sample_study), "--quick"] if command == "study" else [str(scenario_file), "--set", "duration='1 s'"]
    what += ["--grid", "flow.main.cc=reno"] if command == "sweep" else []
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", command, *what, "--out", str(tmp_path / "out")],
        # No file grows beyond this, as on a disk that is full.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
        # The interpreter would cut off compiled modules as well, and every later import of them would fail.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert str(tmp_path / "out") in done.stderr
    assert done.stderr.endswith("File too large\n")
    assert ".part" not in done.stderr
    if command != "sweep":
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"kind": 1}', b'{"kind": []}', b'{"kind": "run", "files": 3}',
        b'{"kind": "run", "files": [1]}', b'{"kind": "run", "files": [""]}', b'{"kind": "run", "files": ["/"]}',
        b'{"kind": "run", "files": ["."]}', b'{"kind": "run", "files": ["../x"]}',
        b'{"kind": "run", "files": [[["x"]]]}',
        b'{"kind": "run", "files": ["\\u0000"]}', b"\xff\xfe", b"\0" * 10, b"[" * 200_000, b'{"kind":' * 50_000,
    ],
)  # fmt: skip
def test_a_manifest_that_is_not_ours_protects_the_directory(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "anabranch.json").write_bytes(content)
    (tmp_path / "mine").write_text("mine")
    for kind in ("run", "sweep"):
        with pytest.raises(UserError, match="was not written by anabranch"):
            check_target(tmp_path, kind)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_manifest_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "anabranch.json")
    with pytest.raises(UserError, match="was not written by anabranch"):
        check_target(tmp_path, "run")


def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be the name of a directory"):
        check_target(tmp_path / "a\0b", "run")


@pytest.mark.parametrize("has_exchange", [True, False])
def test_results_are_replaced_with_or_without_an_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_exchange: bool
) -> None:
    if not has_exchange:
        monkeypatch.setattr(_engine, "exchange", lambda *_: False)
    target = tmp_path / "out"
    for name in ("a", "b"):
        with whole_directory(target, "run") as aside:
            (aside / name).write_text(name)
    assert sorted(path.name for path in target.iterdir()) == ["anabranch.json", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_target_is_there_at_every_moment(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("there is no exchange")
    target = tmp_path / "out"
    with whole_directory(target, "run"):
        pass
    gone = threading.Event()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            if not target.exists():
                gone.set()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            with whole_directory(target, "run"):
                pass
    finally:
        over.set()
        looking.join()
    assert not gone.is_set()


def test_what_was_put_there_during_the_run_is_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    refused = pytest.raises(UserError, match=rf"{target} holds files that are not ours \(mine\)")
    with refused, whole_directory(target, "run"):
        (target / "mine").write_text("mine")
    assert sorted(path.name for path in target.iterdir()) == ["a", "anabranch.json", "mine"]
