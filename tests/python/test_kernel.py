"""Kernels in virtual time: selection, errors without a kernel, and jobs in a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch import _engine
from anabranch.diagnosis.interface import Interface
from anabranch.errors import RunFailedError, UserError
from anabranch.kernel import build, failures, images, inside, processor
from anabranch.kernel.images import Image
from anabranch.kernel.machine import Job


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(images.VARIABLE, raising=False)
    folder = tmp_path / "anabranch" / "kernels"
    folder.mkdir(parents=True)
    return folder


def a_library() -> Path:
    """A library that any program may load first."""
    paths = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
    return next(Path(path) for path in paths if Path(path).name.startswith(("libc.so", "libc-", "ld-musl")))


def planted(cache: Path, release: str, script: str = "exit 0") -> Image:
    """An image whose kernel is a shell script that receives the kernel's command line as arguments."""
    folder = cache / f"{release}-0123"
    folder.mkdir()
    linux = folder / images.LINUX
    linux.write_text(f"#!/bin/sh\nfor word; do case $word in job=*) job=${{word#job=}} ;; esac; done\n{script}\n")
    (folder / images.INIT).write_text("#!/bin/sh\n")
    (folder / images.PRELOAD).symlink_to(a_library())
    for path in (linux, folder / images.INIT):
        path.chmod(0o755)
    facts = {"release": release, "recipe": "0123", "source": "a tree"}
    (folder / images.FACTS).write_text(json.dumps(facts))
    image = images.read(folder)
    assert image is not None
    return image


@pytest.mark.parametrize("needs", [images.chosen, lambda: build.build(None), lambda: Interface("lo")])
def test_other_systems_have_one_message(needs: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(RunFailedError, match="needs Linux; simulated runs, studies"):
        needs()


def test_the_newest_kernel_is_used_unless_another_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = planted(cache, "6.1.99"), planted(cache, "6.12.1")
    assert images.images() == [new, old]
    assert images.chosen() == new
    assert images.chosen("6.1") == old
    assert images.chosen(str(old.folder)) == old
    monkeypatch.setenv(images.VARIABLE, "6.1")
    assert images.chosen() == old
    assert images.chosen("6.12.1") == new


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("6.12", "no kernel 6.12 is built\n  type: anabranch kernel build 6.12"),
        (None, "no kernel is built that could run in virtual time\n  type: anabranch kernel build"),
        ("/nowhere/linux", "/nowhere/linux is no kernel that `anabranch kernel build` has made"),
    ],
)
def test_a_missing_kernel_names_the_command_that_builds_it(cache: Path, wish: str | None, message: str) -> None:
    with pytest.raises(UserError) as refused:
        images.chosen(wish)
    assert str(refused.value) == message


def test_an_incomplete_build_folder_is_not_a_kernel(cache: Path) -> None:
    image = planted(cache, "6.12.1")
    image.init.unlink()
    assert images.images() == []


def test_a_job_leaves_status_and_output(cache: Path) -> None:
    image = planted(cache, "6.12.1", 'sh "$job/command" >"$job/out" 2>"$job/err"; echo $? >"$job/status"')
    shares: list[float] = []
    with Job() as job:
        ended = job.run(image, ["sh", "-c", "echo 'one two'; echo wrong >&2; exit 3"], progress=shares.append)
        folder = job.folder
    assert (ended.status, ended.out, ended.err) == (3, "one two\n", "wrong\n")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Kernel panic - not syncing: no init'; exit 134", "panicked\n  Kernel panic - not syncing: no init"),
        (
            "echo 'Out of memory and no killable processes'; exit 134",
            "has too little memory\n  Out of memory and no killable processes\n"
            "  give it more, in MiB: ANABRANCH_KERNEL_MEMORY=2048",
        ),
        (
            'echo "linux: version \\`GLIBC_2.99\' not found"; exit 1',
            "was built for another C library than this machine's\n  linux: version `GLIBC_2.99' not found\n"
            "  type: anabranch kernel build 6.12",
        ),
        (
            "echo 'check_ptrace : ptrace failed, errno = 1'; exit 1",
            "may not trace its processes: this machine forbids ptrace\n  check_ptrace : ptrace failed, errno = 1\n"
            "  see /proc/sys/kernel/yama/ptrace_scope, and in a container its seccomp profile",
        ),
        ("kill -9 $$", "was killed by another program, perhaps because memory ran out"),
        ("exit 7", "ended with status 7"),
    ],
)
def test_a_kernel_that_stops_is_one_message_with_its_console(cache: Path, script: str, message: str) -> None:
    with Job() as job, pytest.raises(RunFailedError) as failed:
        job.run(planted(cache, "6.12.1", script), ["true"])
    assert str(failed.value) == f"the kernel 6.12.1 {message}"


def test_a_program_killed_for_memory_names_the_remedy(cache: Path) -> None:
    image = planted(cache, "6.12.1", "echo 'Out of memory: Killed process 9 (python3)'; echo 137 >\"$job/status\"")
    with Job() as job, pytest.raises(RunFailedError) as failed:
        job.run(image, ["true"], memory_mib=64)
    assert str(failed.value) == (
        "the guest's memory of 64 MiB is too small\n  give it more, in MiB: ANABRANCH_KERNEL_MEMORY=128"
    )


def test_a_kernel_of_another_machine_does_not_start(cache: Path) -> None:
    image = planted(cache, "6.12.1")
    image.linux.write_bytes(b"\x7fELF")
    with Job() as job, pytest.raises(RunFailedError) as failed:
        job.run(image, ["true"])
    assert str(failed.value) == (
        f"the kernel {image.linux} does not start: Exec format error\n  type: anabranch kernel build 6.12"
    )


@pytest.mark.parametrize("given", ["much", "0", "-5", "127"])
def test_an_invalid_memory_size_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ANABRANCH_KERNEL_MEMORY", given)
    with Job() as job, pytest.raises(UserError) as refused:
        job.run(planted(cache, "6.12.1"), ["true"])
    assert str(refused.value) == f"ANABRANCH_KERNEL_MEMORY={given}: a number of MiB was expected, 128 or more"


def test_the_memory_is_allocated_where_there_is_space(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a guest that dies later of a shared memory of 64 MiB, as in containers."""
    monkeypatch.setattr(failures, "free_mib", lambda folder: 64 if folder.endswith("/shm") else 5000)
    image = planted(cache, "6.12.1", 'echo "$TMPDIR" >"$job/out"; : >"$job/err"; echo 0 >"$job/status"')
    with Job() as job:
        assert job.run(image, ["true"]).out.strip() == tempfile.gettempdir()
    monkeypatch.setattr(failures, "free_mib", lambda _folder: 64)
    with (
        Job() as job,
        pytest.raises(UserError, match=r"no folder has 1,024 MiB for the guest's memory: .* 64 MiB") as no,
    ):
        job.run(image, ["true"])
    assert "name one with space: TMPDIR=FOLDER" in str(no.value)


def test_a_kernel_of_an_earlier_version_names_the_command(cache: Path) -> None:
    planted(cache, "6.12.1").preload.unlink()
    with pytest.raises(UserError) as refused:
        images.chosen()
    assert str(refused.value) == (
        "an earlier version of Anabranch built the kernel 6.12.1, without a seed\n  type: anabranch kernel build 6.12"
    )


def lives(process: int) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_guest_without_progress_is_ended_with_its_processes(cache: Path, tmp_path: Path) -> None:
    image = planted(cache, "6.12.1", f"sleep 60 & echo $! >{tmp_path}/process; wait")
    began = time.monotonic()
    with Job() as job, pytest.raises(RunFailedError, match="virtual time has stood still at 0 s for 0 s"):
        job.run(image, ["true"], silence_s=0.3)
    assert time.monotonic() - began < 10
    process = int((tmp_path / "process").read_text())
    while lives(process) and time.monotonic() - began < 10:
        time.sleep(0.02)
    assert not lives(process)


AFFINITY = """grep Cpus_allowed_list /proc/self/status >"$job/out"; : >"$job/err"; sleep 0.3; echo 0 >"$job/status\""""


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests of other programs are not counted."""
    monkeypatch.setattr(processor, "NAME", f"anabranch-test-{os.getpid()}")


def _processors_of_guests(image: Image, guests: int) -> list[str]:
    def one(_: int) -> str:
        with Job() as job:
            return job.run(image, ["true"]).out.split()[1]

    with ThreadPoolExecutor(guests) as pool:
        return sorted(pool.map(one, range(guests)))


@pytest.mark.usefixtures("quiet")
def test_guests_side_by_side_run_on_one_processor_each(cache: Path) -> None:
    """Detects a guest that moves between processors, and two guests on one while another processor is free."""
    image = planted(cache, "6.12.1", AFFINITY)
    mine = sorted(os.sched_getaffinity(0))[:2]
    seen = _processors_of_guests(image, len(mine))
    assert all(one.isdigit() for one in seen)
    assert len(set(seen)) == len(mine)
    assert os.sched_getaffinity(0) >= set(mine)


@pytest.mark.usefixtures("quiet")
def test_a_guest_stays_on_the_processors_of_its_caller(cache: Path) -> None:
    image = planted(cache, "6.12.1", AFFINITY)
    before = os.sched_getaffinity(0)
    last = max(before)
    os.sched_setaffinity(0, {last})
    try:
        assert set(_processors_of_guests(image, 3)) == {str(last)}
        assert os.sched_getaffinity(0) == {last}
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("quiet")
def test_a_processor_is_free_again_when_its_holder_ends() -> None:
    with processor.held() as first, processor.held() as second:
        assert first != second or len(os.sched_getaffinity(0)) == 1
    with processor.held() as again:
        assert again == first


def test_a_program_that_waits_forever_is_ended_by_virtual_time(cache: Path) -> None:
    image = planted(cache, "6.12.1", 'echo 0000000061.000 >"$job/clock"; sleep 60')
    with Job() as job, pytest.raises(RunFailedError, match="has not ended after 61 s of virtual time"):
        job.run(image, ["true"], limit_s=60)


def test_a_guest_with_advancing_time_may_take_long(cache: Path) -> None:
    beats = 'for n in 1 2 3 4 5 6; do echo 00000$n.000 >"$job/clock"; sleep 0.2; done; echo 0 >"$job/status"'
    with Job() as job:
        assert job.run(planted(cache, "6.12.1", beats), ["true"], silence_s=0.7).status == 0


def test_the_guest_gets_its_seed_and_no_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects inputs that differ from run to run: the size of the environment, the folder's name in the arguments."""
    monkeypatch.setenv("SOME_VARIABLE", "x" * 1000)
    printed = 'env | sort | grep -v ^PWD; for word; do echo "$word"; done'
    image = planted(cache, "6.12.1", f'{{ {printed}; }} >"$job/out"; echo 0 >"$job/status"')
    seen = []
    for _ in range(2):
        with Job() as job:
            seen.append(job.run(image, ["true"], seed=7).out)
    assert seen[0] == seen[1]
    assert "ANABRANCH_KERNEL_SEED=7" in seen[0]
    assert "SOME_VARIABLE" not in seen[0]


def test_an_invalid_source_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it has no arch/um"):
        build.build(str(tmp_path))
    with pytest.raises(UserError, match="there is no /nowhere/tree"):
        build.build("/nowhere/tree")


@pytest.mark.parametrize("source", ["_INIT_SOURCE", "_PRELOAD_SOURCE", "_DCACHE_HEADER", "CONFIG"])
def test_the_recipe_changes_with_each_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    before = build.recipe()
    other = tmp_path / "source"
    other.write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(build, source, other)
    assert build.recipe() != before


def test_a_guest_imports_little_apart_from_the_engine() -> None:
    """Detects an import that delays the start of every guest: each of these costs 5 to 50 ms."""
    folder = Path(inside.__file__).parents[2]
    code = (
        f"import sys; sys.path.append({str(folder)!r}); from anabranch.kernel import folders, inside\n"
        f"inside._load('anabranch._engine', {_engine.__file__!r}); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    heavy = {"contextlib", "ctypes", "dataclasses", "enum", "numpy", "pathlib", "pickle", "re", "subprocess", "typing"}
    assert not heavy & set(loaded.stdout.split())
