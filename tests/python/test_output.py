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


def test_a_directory_appears_complete(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a.txt").write_text("a")
        assert not target.exists()
    assert sorted(p.name for p in target.iterdir()) == ["a.txt", "anabranch.json"]
    assert [p.name for p in target.parent.iterdir()] == ["out"]


def test_an_interrupted_directory_does_not_appear(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def stopped_half_way() -> None:
        with whole_directory(target, "run") as aside:
            (aside / "a.txt").write_text("a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_half_way()
    assert list(tmp_path.iterdir()) == []


def test_our_results_are_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for name in ("a", "b"):
        with whole_directory(target, "run") as aside:
            (aside / name).write_text(name)
    assert sorted(p.name for p in target.iterdir()) == ["anabranch.json", "b"]


def test_a_failed_second_run_leaves_the_first(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    with pytest.raises(RuntimeError), whole_directory(target, "run"):
        raise RuntimeError
    assert (target / "a").read_text() == "a"


def test_a_foreign_directory_is_not_destroyed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(UserError, match="not empty and was not written by anabranch"):
        check_target(tmp_path, "run")
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_foreign_files_next_to_ours_are_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    (target / "notes.md").write_text("mine")
    with pytest.raises(UserError, match=r"files that are not ours \(notes.md\)"):
        check_target(target, "run")


def test_results_of_another_command_are_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "study"):
        pass
    (target / "x").write_text("x")
    with pytest.raises(UserError, match="results of `anabranch study`"):
        check_target(target, "run")


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(UserError, match=r"directory=.*f is a file; a directory was expected"):
        check_target(tmp_path / "f", "run")


def test_write_whole_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "p" / "x.json", b"1")
    assert [p.name for p in (tmp_path / "p").iterdir()] == ["x.json"]
    assert read_manifest(tmp_path) is None


def test_a_symbolic_link_is_followed_and_remains(tmp_path: Path) -> None:
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


def test_foreign_files_deep_in_our_results_are_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "figures").mkdir()
        (aside / "figures" / "a").write_text("a")
    (target / "figures" / "mine").write_text("mine")
    with pytest.raises(UserError, match=r"files that are not ours \(figures/mine\)"):
        check_target(target, "run")


def test_an_empty_name_is_not_a_directory(anabranch: Call, scenario_file: Path) -> None:
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
        # Files cannot grow beyond this, as on a full disk.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
        # Otherwise the interpreter would also truncate compiled modules, and every later import of
        # them would fail.
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
def test_a_foreign_manifest_protects_the_directory(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "anabranch.json").write_bytes(content)
    (tmp_path / "mine").write_text("mine")
    for kind in ("run", "sweep"):
        with pytest.raises(UserError, match="was not written by anabranch"):
            check_target(tmp_path, kind)
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_endless_manifest_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "anabranch.json")
    with pytest.raises(UserError, match="was not written by anabranch"):
        check_target(tmp_path, "run")


def test_an_invalid_name_is_refused(tmp_path: Path) -> None:
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


def test_the_target_exists_at_every_moment(tmp_path: Path) -> None:
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


def test_files_added_during_the_run_are_not_destroyed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_directory(target, "run") as aside:
        (aside / "a").write_text("a")
    refused = pytest.raises(UserError, match=rf"{target} holds files that are not ours \(mine\)")
    with refused, whole_directory(target, "run"):
        (target / "mine").write_text("mine")
    assert sorted(path.name for path in target.iterdir()) == ["a", "anabranch.json", "mine"]


def write_twice(target: Path) -> None:
    """Write results of two runs, each with a separate file, into one directory in turn."""
    for name in ("a", "b"):
        with whole_directory(target, "run") as aside:
            (aside / name).write_text(name)
            (aside / "figures").mkdir()
            (aside / "figures" / name).write_text(name)
            (aside / f"only-{name}").mkdir()
            (aside / f"only-{name}" / "x").write_text(name)


LEFT = ["anabranch.json", "b", "figures", "only-b"]
"""Files after the second run."""


def system(*command: object) -> bool:
    """Run a command of the system; return whether it succeeded."""
    if shutil.which(str(command[0])) is None:
        return False
    done = subprocess.run(list(map(str, command)), capture_output=True, check=False)  # noqa: S603 - a test's
    return done.returncode == 0


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    """A new file system."""
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
        # It is on the same file system as its parent: only the table of mounts shows the mount.
        assert not os.path.ismount(mount / "other")
        write_twice(mount / "other")
        assert sorted(path.name for path in (mount / "one").iterdir()) == LEFT
        assert sorted(path.name for path in mount.iterdir()) == ["one", "other"]
    finally:
        assert system("umount", mount / "other")


def test_files_at_the_root_of_a_file_system_do_not_conflict(mount: Path) -> None:
    (mount / "lost+found").mkdir()
    write_twice(mount)
    assert sorted(path.name for path in mount.iterdir()) == sorted([*LEFT, "lost+found"])


def test_a_run_into_a_mount_point(anabranch: Call, mount: Path, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--set", "duration='1 s'", "--out", mount, "--no-packets", "--figures")
    assert done.status == 0, done.err
    assert {"anabranch.json", "summary.json", "figures"} <= {path.name for path in mount.iterdir()}


def test_the_working_directory_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    write_twice(Path())
    assert sorted(os.listdir()) == LEFT
    assert Path.cwd() == out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_working_directory_of_another_process_remains(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    out = tmp_path / "out"
    out.mkdir()
    with subprocess.Popen(["sleep", "600"], cwd=out) as shell:  # noqa: S607 - a test's
        write_twice(out)
        assert os.path.samefile(f"/proc/{shell.pid}/cwd", out)
        shell.kill()
    assert sorted(path.name for path in out.iterdir()) == LEFT


def test_an_interrupted_move_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    # The next run replaces the whole content.
    write_twice(out)
    assert sorted(path.name for path in out.iterdir()) == LEFT
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest.is_complete


def test_a_signal_waits_until_all_files_are_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_temporary_files_of_another_process_do_not_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_parts_on_a_full_disk_are_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").symlink_to("/dev/full")
    parts = pl.DataFrame({"a": range(300_000)}).iter_slices(100_000)
    with pytest.raises(OSError, match="No space left on device"):
        write_parts(tmp_path, "t", iter(parts), 100_000)


def test_an_interrupt_between_parts_remains_an_interrupt(tmp_path: Path) -> None:
    def parts() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": range(10)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parts(tmp_path, "t", parts(), 10)
