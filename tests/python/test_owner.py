"""Temporary files of dead processes are removed, and files of running processes remain."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anabranch.files import owner
from anabranch.files.output import check_target, whole_directory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def left_by_a_dead_process(directory: Path) -> Path:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from anabranch.files.output import whole_directory\n"
        "with whole_directory(Path(sys.argv[1]), 'run') as aside:\n"
        "    (aside / 'half').write_text('half')\n"
        "    print(aside, flush=True)\n"
        "    os._exit(0)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(directory / "out")], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


def test_the_next_command_removes_files_of_a_dead_process(tmp_path: Path) -> None:
    left = left_by_a_dead_process(tmp_path)
    assert (left / "half").exists()
    # The command has another target in the same directory: the directory matters, not the name.
    check_target(tmp_path / "other", "run")
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_running_process_remain(tmp_path: Path) -> None:
    with whole_directory(tmp_path / "out", "run") as aside:
        owner.remove_dead.cache_clear()
        owner.remove_dead(tmp_path)
        assert aside.is_dir()


def test_only_our_names_of_dead_local_processes_are_removed(tmp_path: Path) -> None:
    left = left_by_a_dead_process(tmp_path)
    process, start, place, rest = left.name.removeprefix(f".{owner.PREFIX}").split("-", 3)
    own = os.stat(f"/proc/{os.getpid()}/stat")
    assert own
    kept = [
        f".{owner.PREFIX}{process}-{start}-{place}x-{rest}",  # not our format
        f".{owner.PREFIX}{process}-{start}-0123456789abcdef-{rest}",  # another container's
        f"{process}-{start}-{place}-{rest}",
        ".anabranch-notes",
    ]
    for name in kept:
        (tmp_path / name).mkdir()
    target = tmp_path / "precious"
    target.mkdir()
    (tmp_path / f".{owner.PREFIX}{process}-{start}-{place}-link").symlink_to(target)
    kept += [f".{owner.PREFIX}{process}-{start}-{place}-link", "precious"]
    owner.remove_dead.cache_clear()
    owner.remove_dead(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_reused_process_number_is_another_process(tmp_path: Path) -> None:
    left = left_by_a_dead_process(tmp_path)
    _, _, place, rest = left.name.removeprefix(f".{owner.PREFIX}").split("-", 3)
    again = tmp_path / f".{owner.PREFIX}{os.getpid()}-1-{place}-{rest}"
    left.rename(again)
    owner.remove_dead.cache_clear()
    owner.remove_dead(tmp_path)
    assert not again.exists()


def test_files_of_unknown_machines_remain_for_a_week(tmp_path: Path) -> None:
    foreign = tmp_path / f".{owner.PREFIX}1-1-0123456789abcdef-0.part"
    foreign.mkdir()
    owner.remove_dead.cache_clear()
    owner.remove_dead(tmp_path)
    assert foreign.exists()
    old = time.time() - owner.FOREIGN_S - 60
    os.utime(foreign, (old, old))
    owner.remove_dead.cache_clear()
    owner.remove_dead(tmp_path)
    assert not foreign.exists()
