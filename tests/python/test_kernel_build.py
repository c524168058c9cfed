"""Building kernels: a small tree instead of Linux's, leftovers of an ended build, and messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from anabranch.errors import RunFailedError, UserError
from anabranch.files import owner
from anabranch.kernel import build, images

from .command import Call
from .test_kernel import a_library, lives

GUEST = """#!/bin/sh
printf '1000.5\\n 0123\\n' >out; : >err; echo 0 >status
"""
"""A kernel with the output of one with virtual time."""

MAKEFILE = """
.SILENT:
allnoconfig:
	grep -v "$(WITHOUT)" $(KCONFIG_ALLCONFIG) >$(O)/.config
linux:
	echo "  CC      init/main.o"
	{compiles}
	cp guest $(O)/linux
kernelrelease:
	echo 9.9.9
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(images.VARIABLE, raising=False)
    return tmp_path / "cache" / "anabranch" / "kernels"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree, and compilers that only copy."""
    folder = tmp_path / "linux"
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "Kconfig").write_text('# A title\nmainmenu "Linux"\n\nsource "init/Kconfig"\n', "utf-8")
    (folder / "guest").write_text(GUEST)
    (folder / "guest").chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    compiler = f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp {a_library()} "$2"; chmod +x "$2"\n'
    for name, script in {"strip": "#!/bin/sh\n", "cc": compiler}.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "PROGRAMS", {"make": "make"})
    write_makefile(folder)
    return folder


def write_makefile(tree: Path, compiles: str = "true", without: str = "NET_SCH_DUALPI2") -> None:
    (tree / "Makefile").write_text(f"WITHOUT = {without}\n{MAKEFILE.format(compiles=compiles)}")


def test_dentries_are_destroyed_without_a_switch_to_another_task(cache: Path, tree: Path) -> None:
    """Detects a build without the header that keeps the poll of `shrink_dcache_parent()` from standing still."""
    write_makefile(tree, compiles='echo "$(CFLAGS_dcache.o)" >$(CURDIR)/flags')
    build.build(str(tree))
    option, header = (tree / "flags").read_text("utf-8").split()
    assert option == "-include"
    assert "#undef cond_resched" in Path(header).read_text("utf-8")


def test_a_build_leaves_one_kernel_and_names_the_missing_options(cache: Path, tree: Path) -> None:
    said: list[str] = []
    image = build.build(str(tree), say=said.append)
    assert [path.name for path in cache.iterdir()] == [f"9.9.9-{build.recipe()}"]
    assert images.images() == [image]
    assert (image.release, image.source, image.lacks) == ("9.9.9", str(tree), ("NET_SCH_DUALPI2",))
    assert "this Linux has no NET_SCH_DUALPI2" in said
    assert build.build(str(tree)) == image


def test_a_tree_without_virtual_time_is_refused_before_it_is_compiled(cache: Path, tree: Path) -> None:
    write_makefile(tree, without="UML_TIME_TRAVEL")
    with pytest.raises(UserError) as refused:
        build.build(str(tree))
    assert str(refused.value) == (
        "this kernel has no virtual time: UML_TIME_TRAVEL_SUPPORT is in Linux 5.9 and later, not in every tree"
    )
    assert list(cache.iterdir()) == []


def test_a_failing_compiler_is_one_message(cache: Path, tree: Path) -> None:
    write_makefile(tree, "echo 'init/main.c:7: error: no such thing'; echo 'make: stop'; exit 1")
    with pytest.raises(RunFailedError) as failed:
        build.build(str(tree))
    assert str(failed.value) == "the kernel does not compile: init/main.c:7: error: no such thing"
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("guest", "message"),
    [
        (GUEST.replace("1000.5", "3.5"), "Linux 9.9.9 ran, but its time is not virtual: 3.5"),
        (GUEST.replace("0123", "$$"), "Linux 9.9.9 ran, but it draws other numbers each time"),
    ],
)
def test_a_kernel_that_violates_the_rules_is_refused(cache: Path, tree: Path, guest: str, message: str) -> None:
    (tree / "guest").write_text(guest.replace("printf '", 'printf "').replace("\\n' >out", '\\n" >out'))
    with pytest.raises(RunFailedError, match=message):
        build.build(str(tree))
    assert list(cache.iterdir()) == []


def started(tree: Path, tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    """A build whose compiler runs for a minute; the build and its compiler."""
    mark = tmp_path / "compiler"
    mark.unlink(missing_ok=True)
    write_makefile(tree, f"sleep 60 & echo $$! >{mark}; wait")
    code = (
        "from anabranch.kernel import build\nbuild.PROGRAMS = {}\n"
        f"import sys\nsys.argv = ['anabranch', 'kernel', 'build', {str(tree)!r}]\n"
        "from anabranch.entry import main\nmain()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)  # noqa: S603 - ours
    until = time.monotonic() + 60
    while not (mark.exists() and mark.read_text().endswith("\n")):
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            pytest.fail(f"the build has not begun: {process.communicate()[1]}")
        time.sleep(0.05)
    return process, int(mark.read_text())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_leaves_no_folder_and_no_compiler(
    cache: Path, tree: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    process, compiler = started(tree, tmp_path)
    (work,) = cache.iterdir()
    for count in range(2000):
        (work / f"file-{count}").write_text("")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == status
    assert list(cache.iterdir()) == []
    assert not lives(compiler)


def test_the_next_build_removes_leftovers_of_a_killed_one(cache: Path, tree: Path, tmp_path: Path) -> None:
    process, compiler = started(tree, tmp_path)
    process.kill()
    process.communicate()
    # Compilers of a killed build end by themselves; here they would still write into the folder.
    os.killpg(os.getpgid(compiler), signal.SIGKILL)
    assert len(list(cache.iterdir())) == 1
    assert images.images() == []
    write_makefile(tree)
    owner.remove_dead.cache_clear()
    image = build.build(str(tree))
    assert list(cache.iterdir()) == [image.folder]


def test_the_list_shows_release_state_and_source(cache: Path, tree: Path, anabranch: Call) -> None:
    image = build.build(str(tree))
    shown = anabranch("kernel", "list")
    assert [word in shown.out for word in ("9.9.9", "current", str(tree))] == [True] * 3
    assert "Linux 9.9.9 has no NET_SCH_DUALPI2" in shown.err
    facts = json.loads((image.folder / images.FACTS).read_text())
    (image.folder / images.FACTS).write_text(json.dumps({**facts, "recipe": "0123"}))
    shown = anabranch("kernel", "list")
    assert "older" in shown.out
    assert "to renew it, type: anabranch kernel build 9.9" in shown.err
    (one,) = json.loads(anabranch("kernel", "list", "--json").out)
    assert (one["release"], one["current"], one["lacks"]) == ("9.9.9", False, ["NET_SCH_DUALPI2"])


def test_a_check_names_missing_features_of_the_kernel(cache: Path, tree: Path, anabranch: Call) -> None:
    build.build(str(tree))
    done = anabranch("kernel", "check")
    assert done.out == "Linux 9.9.9 runs, its time is virtual, and a seed determines its random numbers\n"
    assert "Linux 9.9.9 has no NET_SCH_DUALPI2" in done.err


@pytest.mark.skipif(os.geteuid() == 0 and Path("/etc/debian_version").exists(), reason="root on Debian installs")
def test_a_missing_source_names_the_command_that_installs_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ARCHIVES", Path("/nowhere"))
    with pytest.raises(UserError, match=r"type: (sudo )?apt-get install linux-source-6\.1"):
        build.build("6.1")


def test_archives_of_debian_and_ubuntu_are_found(
    cache: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Detects a name without Ubuntu's third number, and an archive without the link next to its folder."""
    sources = tmp_path / "src"
    monkeypatch.setattr(build, "ARCHIVES", sources)
    assert build.archives() == {}
    ubuntu = sources / "linux-source-6.17.0" / "linux-source-6.17.0.tar.bz2"
    ubuntu.parent.mkdir(parents=True)
    with tarfile.open(ubuntu, "w:bz2") as archive:
        archive.add(tree, "linux-source-6.17.0")
    (sources / "linux-source-6.12.tar.xz").touch()
    (sources / "linux-source-6.17.0" / "debian.master").mkdir()
    assert list(build.archives()) == ["6.17", "6.12"]
    link = sources / "linux-source-6.17.0.tar.bz2"
    link.symlink_to("linux-source-6.17.0/linux-source-6.17.0.tar.bz2")
    assert list(build.archives()) == ["6.17", "6.12"]
    for wish in ("6.17", "6.17.0"):
        assert Path(build.build(wish).source).name == ubuntu.name
    link.unlink()
    ubuntu.unlink()
    link.symlink_to("linux-source-6.17.0/linux-source-6.17.0.tar.bz2")
    assert list(build.archives()) == ["6.12"]
