from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from anabranch import _engine, interrupt
from anabranch.errors import UserError
from anabranch.files import output
from anabranch.files.output import (
    check_parent,
    check_target,
    read_manifest,
    whole_directory,
    write_manifest,
)
from anabranch.files.output_file import write_whole
from anabranch.result.table_file import write_parts

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
    with pytest.raises(UserError, match=r"directory=.*f is a file; a directory was expected"):
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
        "  make that directory, or choose another place\n"
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


def test_several_studies_are_not_written_among_results(anabranch: Call, tmp_path: Path, small_study: Path) -> None:
    out = tmp_path / "out"
    with whole_directory(out, "run"):
        pass
    done = anabranch("study", small_study, small_study, "--quick", "--out", out)
    assert (done.status, done.out) == (2, "")
    assert f"{out} holds the results of `anabranch run`; it is left as it is" in done.err
    assert [p.name for p in out.iterdir()] == ["anabranch.json"]
    check_parent(tmp_path)


@pytest.mark.parametrize("command", ["run", "sweep", "study"])
def test_a_full_disk_is_one_line(command: str, tmp_path: Path, scenario_file: Path, small_study: Path) -> None:
    what = [str(small_study), "--quick"] if command == "study" else [str(scenario_file), "--set", "duration='1 s'"]
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
    if command == "run":
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


def write_twice(target: Path) -> None:
    """Results of two runs, each with a file of its own, in one directory after the other."""
    for name in ("a", "b"):
        with whole_directory(target, "run") as aside:
            (aside / name).write_text(name)
            (aside / "figures").mkdir()
            (aside / "figures" / name).write_text(name)
            (aside / f"only-{name}").mkdir()
            (aside / f"only-{name}" / "x").write_text(name)


LEFT = ["anabranch.json", "b", "figures", "only-b"]
"""What the second run leaves."""


def system(*command: object) -> bool:
    """Run a command of the system, and whether it worked."""
    if shutil.which(str(command[0])) is None:
        return False
    done = subprocess.run(list(map(str, command)), capture_output=True, check=False)  # noqa: S603 - a test's
    return done.returncode == 0


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    point = tmp_path / "a volume"
    point.mkdir()
    if not system("mount", "-t", "tmpfs", "none", point):
        pytest.skip("cannot mount a file system")
    yield point
    assert system("umount", point)


def test_a_mount_point_is_written_into(mount: Path) -> None:
    write_twice(mount)
    assert sorted(path.name for path in mount.iterdir()) == LEFT
    assert [path.name for path in (mount / "figures").iterdir()] == ["b"]
    assert [path.name for path in mount.parent.iterdir()] == [mount.name]
    manifest = read_manifest(mount)
    assert manifest is not None
    assert (manifest.is_complete, manifest.files) == (True, ("b", "figures/b", "only-b/x"))


def test_a_bound_directory_is_written_into(tmp_path: Path, mount: Path) -> None:
    (mount / "one").mkdir()
    (mount / "other").mkdir()
    assert system("mount", "--bind", mount / "one", mount / "other")
    try:
        # Of the same file system as its parent: only the table of mounts tells.
        assert not os.path.ismount(mount / "other")
        write_twice(mount / "other")
        assert sorted(path.name for path in (mount / "one").iterdir()) == LEFT
        assert sorted(path.name for path in mount.iterdir()) == ["one", "other"]
    finally:
        assert system("umount", mount / "other")


def test_what_a_file_system_makes_at_its_root_is_not_in_the_way(mount: Path) -> None:
    (mount / "lost+found").mkdir()
    write_twice(mount)
    assert sorted(path.name for path in mount.iterdir()) == sorted([*LEFT, "lost+found"])


def test_a_run_into_a_mount_point(anabranch: Call, mount: Path, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--set", "duration='1 s'", "--out", mount, "--no-packets", "--figures")
    assert done.status == 0, done.err
    assert {"anabranch.json", "summary.json", "figures"} <= {path.name for path in mount.iterdir()}


def test_the_working_directory_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    write_twice(Path())
    assert sorted(os.listdir()) == LEFT
    assert Path.cwd() == out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_working_directory_of_another_process_stays(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    out = tmp_path / "out"
    out.mkdir()
    with subprocess.Popen(["sleep", "600"], cwd=out) as shell:  # noqa: S607 - a test's
        write_twice(out)
        assert os.path.samefile(f"/proc/{shell.pid}/cwd", out)
        shell.kill()
    assert sorted(path.name for path in out.iterdir()) == LEFT


def test_what_is_moved_in_and_cut_short_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    write_twice(out)
    move = output._move
    moved: list[Path] = []

    def fail_late(source: Path, target: Path) -> None:
        if len(moved) == 2:
            raise OSError(5, "Input/output error")
        moved.append(target)
        move(source, target)

    monkeypatch.setattr(output, "_move", fail_late)
    with pytest.raises(RuntimeError, match="Input/output error"):
        write_twice(out)
    monkeypatch.setattr(output, "_move", move)
    manifest = read_manifest(out)
    assert manifest is not None
    assert not manifest.is_complete
    # The next run replaces all of it.
    write_twice(out)
    assert sorted(path.name for path in out.iterdir()) == LEFT
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest.is_complete


def test_a_signal_waits_until_all_is_moved_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, interrupt._raise)
    try:
        move = output._move

        def interrupted(source: Path, target: Path) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            move(source, target)

        monkeypatch.setattr(output, "_move", interrupted)
        with pytest.raises(interrupt.Terminated):
            write_twice(out)
    finally:
        signal.signal(signal.SIGTERM, before)
        monkeypatch.setattr(interrupt._state, "received", None)
    assert sorted(path.name for path in out.iterdir()) == ["a", "anabranch.json", "figures", "only-a"]


def test_what_another_process_writes_now_is_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with whole_directory(tmp_path, "run") as aside:
        assert aside.parent == tmp_path
        check_target(tmp_path, "run")


def test_a_scenario_that_is_a_directory_with_incomplete_results(anabranch: Call, tmp_path: Path) -> None:
    write_manifest(tmp_path, "run", (), is_complete=False)
    done = anabranch("run", tmp_path)
    assert done.status == 2
    assert "the results are not complete" in done.err


def test_parts_become_row_groups_of_one_table(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": range(95), "b": [None if i % 3 else str(i) for i in range(95)]})
    for rows in (10, 19, 95, 1000):
        write_parts(tmp_path, "t", iter(table.iter_slices(rows)), rows)
        assert pl.read_parquet(tmp_path / "t.parquet").equals(table)


def test_parts_on_a_full_disk_are_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").symlink_to("/dev/full")
    parts = pl.DataFrame({"a": range(300_000)}).iter_slices(100_000)
    with pytest.raises(OSError, match="No space left on device"):
        write_parts(tmp_path, "t", iter(parts), 100_000)


def test_an_interrupt_between_parts_stays_one(tmp_path: Path) -> None:
    def parts() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": range(10)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parts(tmp_path, "t", parts(), 10)
