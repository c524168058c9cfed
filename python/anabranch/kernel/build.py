"""Builds kernels for virtual time, from the source of a distribution or of the user."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from anabranch import interrupt
from anabranch.errors import RunFailedError, UserError, nearest, require_linux
from anabranch.files import owner
from anabranch.kernel.images import FACTS, INIT, LINUX, PRELOAD, Image, cache, numbers, read
from anabranch.kernel.machine import Job

PROGRAMS = {"make": "make", "cc": "gcc libc6-dev", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils"}
"""Programs that a build needs, and their Debian packages."""
ARCHIVES = Path("/usr/src")
"""Where the packages of Debian and Ubuntu put sources of kernels."""
PARTS = 930
"""Approximate number of files that a build compiles."""
_HERE = Path(__file__).parent
CONFIG = _HERE / "guest" / "config"
_INIT_SOURCE = _HERE / "guest" / "init.c"
_PRELOAD_SOURCE = _HERE / "guest" / "preload.c"
_DCACHE_HEADER = _HERE / "guest" / "dcache.h"
_NAME = re.compile(r"linux-source-(\d+\.\d+)(\.0)?\.tar\.(xz|zst|bz2)")
"""Debian's archive has the version ``6.12``, and Ubuntu's ``6.17.0``."""
_KCONFIG = "Kconfig"
_TICK = """
config HZ
	int
	default 250
"""
"""The tick of distributions' kernels. User-Mode Linux has 100 Hz without a prompt; the first default counts."""
_SLEPT_S = 1000
_CHECK_MIB = 256
_CHECK_S = 120.0
_BUILT_BY = {"TIMESTAMP": "2026-01-01", "USER": "anabranch", "HOST": "anabranch", "VERSION": "1"}

Say = Callable[[str], None]


def recipe() -> str:
    """Hash of the inputs of an image: the configuration, the sources of its programs, and our header for the kernel."""
    sources = (CONFIG, _INIT_SOURCE, _PRELOAD_SOURCE, _DCACHE_HEADER)
    return hashlib.sha256(b"".join([*(path.read_bytes() for path in sources), _TICK.encode()])).hexdigest()[:12]


def archives() -> dict[str, Path]:
    """Sources that are installed, by version, the newest first."""
    # Ubuntu's archive is in a folder, with a link beside it.
    there = (path for pattern in ("*.tar.*", "linux-source-*/*.tar.*") for path in ARCHIVES.glob(pattern))
    found = {match[1]: path for path in there if path.is_file() and (match := _NAME.fullmatch(path.name))}
    return dict(sorted(found.items(), key=lambda item: numbers(item[0]), reverse=True))


def build(source: str | None, *, jobs: int | None = None, say: Say = lambda _: None) -> Image:
    """Build a kernel and test it. The image replaces an earlier one of the same release and recipe.

    Args:
        source: A tree, an archive, or a version packaged by Debian (``"6.12"``); default: the newest installed one.
        jobs: Number of parallel compilers; default: the number of processors.
        say: Called with a message for each step.

    Raises:
        UserError: There is no such source, a program is missing, or the tree has no virtual time.
        RunFailedError: The build failed, or the new kernel does not run.
    """
    require_linux("a kernel in virtual time")
    place = _source(source, say)
    _check_programs(say)
    built_by = recipe()
    with _workplace() as work:
        tree = place if place.is_dir() else _unpacked(place, work, say)
        made = work / "image"
        made.mkdir()
        lacks = _compile(tree, work, made, jobs or os.cpu_count() or 1, say)
        release = _output([*_make(tree, work), "-s", "kernelrelease"]).strip()
        facts = {"release": release, "recipe": built_by, "source": str(place), "lacks": lacks}
        (made / FACTS).write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        image = read(made)
        if image is None:
            raise RunFailedError(f"the build of {place} left no kernel")
        say(f"trying Linux {release}")
        check(image)
        target = cache() / f"{release}-{built_by}"
        with interrupt.whole_step():
            if target.exists():
                shutil.rmtree(target)
            made.rename(target)
    found = read(target)
    assert found is not None  # noqa: S101 - it was moved as it was
    return found


def check(image: Image) -> None:
    """Check that a kernel runs, that its time is virtual, and that a seed determines its random numbers.

    Raises:
        RunFailedError: It does not.
    """
    # After the first second, Linux mixes the entropy it has gathered into its random numbers.
    script = f"sleep {_SLEPT_S}; cut -d ' ' -f 1 /proc/uptime; od -An -N 16 -t x8 /dev/urandom"
    drawn = set()
    for _ in range(2):
        with Job() as job:
            ended = job.run(image, ["sh", "-c", script], memory_mib=_CHECK_MIB, real_s=_CHECK_S)
        uptime, _line, draw = ended.out.partition("\n")
        if ended.status != 0 or not uptime or float(uptime) < _SLEPT_S:
            raise RunFailedError(
                f"Linux {image.release} ran, but its time is not virtual: {ended.err.strip() or ended.out.strip()}"
            )
        drawn.add(draw)
    if len(drawn) > 1:
        raise RunFailedError(f"Linux {image.release} ran, but it draws other numbers each time")


def _source(source: str | None, say: Say) -> Path:
    if source is not None and ("/" in source or Path(source).exists()):
        path = Path(source)
        if not path.exists():
            raise UserError(f"there is no {source}")
        if path.is_dir() and not (path / "arch" / "um").is_dir():
            raise UserError(f"{source} is no source tree of Linux: it has no arch/um")
        return path.resolve()
    there = archives()
    if source is None and there:
        return next(iter(there.values()))
    if source is not None and (found := _of_version(source, there)) is not None:
        return found
    package = f"linux-source-{source}" if source else "linux-source"
    if not _installs([package], say):
        known = f"; {nearest(source, there)}" if source and there else ""
        raise UserError(
            f"no source of Linux {source or ''} is installed in {ARCHIVES}".replace("  ", " "),
            hint=f"type: {_become()}apt-get install {package}, or name a tree: anabranch kernel build DIR{known}",
        )
    there = archives()
    found = _of_version(source or "", there) or next(iter(there.values()), None)
    if found is None:
        raise UserError(f"the package {package} has no source archive in {ARCHIVES}")
    return found


def _of_version(version: str, there: Mapping[str, Path]) -> Path | None:
    return there.get(version) or there.get(version.removesuffix(".0"))


def _check_programs(say: Say) -> None:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    packages = [package for name in missing for package in PROGRAMS[name].split()]
    if missing and not _installs(packages, say):
        raise UserError(
            f"building a kernel needs {', '.join(missing)}",
            hint=f"type: {_become()}apt-get install {' '.join(packages)}",
        )


def _installs(packages: Sequence[str], say: Say) -> bool:
    """Install packages, if this is Debian and the user is root. Returns whether they were installed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or not Path("/etc/debian_version").exists():
        return False
    say(f"installing {' '.join(packages)} from the distribution's packages")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - names of ours
    return done.returncode == 0


def _become() -> str:
    return "" if os.geteuid() == 0 else "sudo "


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """Make a folder beside the kernels and remove it after the block. A later build removes that of a killed build."""
    cache().mkdir(parents=True, exist_ok=True)
    owner.remove_dead(cache())
    folder = owner.beside(cache() / "kernel")
    folder.mkdir()
    try:
        yield folder
    finally:
        # A source tree has 80,000 files: removing it takes longer than an interrupted command is usually given.
        with interrupt.whole_step():
            shutil.rmtree(folder, ignore_errors=True)
            owner.forget(folder)


def _unpacked(archive: Path, work: Path, say: Say) -> Path:
    say(f"unpacking {archive.name}")
    _output(["tar", "-C", str(work), "-xf", str(archive)])
    trees = [path for path in work.iterdir() if (path / "arch" / "um").is_dir()]
    if len(trees) != 1:
        raise UserError(f"{archive} is no archive of Linux's source")
    return trees[0]


def _make(tree: Path, work: Path) -> list[str]:
    # The kernel's name contains builder and time, and seeds its random numbers.
    always = [f"KBUILD_BUILD_{name}={value}" for name, value in _BUILT_BY.items()]
    ours = f"KBUILD_KCONFIG={work / _KCONFIG}"
    return ["make", "-C", str(tree), f"O={work / 'objects'}", "ARCH=um", ours, *always]


def _compile(tree: Path, work: Path, made: Path, jobs: int, say: Say) -> list[str]:
    """Compile an image into ``made``. Returns the options of our configuration that the tree lacks."""
    objects = work / "objects"
    objects.mkdir()
    make = _make(tree, work)
    _kconfig(tree, work)
    _output([*make, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"])
    lacks = _missing_options(objects / ".config")
    if lacks:
        say(f"this Linux has no {', '.join(lacks)}")
    say("compiling: a few minutes")
    lines: list[str] = []
    compiled = steps = 0
    header = f"CFLAGS_dcache.o=-include {shlex.quote(str(_DCACHE_HEADER)).replace('$', '$$')}"
    with _started([*make, header, f"-j{jobs}", "linux"], stderr=subprocess.STDOUT) as process:
        for line in process.stdout or ():
            lines = [*lines[-40:], line.rstrip()]
            compiled += line.lstrip().startswith(("CC ", "AS "))
            if compiled * 10 // PARTS > steps and steps < 9:
                steps += 1
                say(f"{10 * steps} %")
    if process.returncode != 0:
        wrong = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["it printed nothing"]
        raise RunFailedError(f"the kernel does not compile: {wrong[0]}")
    shutil.copy2(objects / LINUX, made / LINUX)
    _output(["strip", str(made / LINUX)])
    _output(["cc", "-O2", "-static", "-o", str(made / INIT), str(_INIT_SOURCE)])
    _output(["cc", "-O2", "-shared", "-fPIC", "-o", str(made / PRELOAD), str(_PRELOAD_SOURCE)])
    return lacks


def _kconfig(tree: Path, work: Path) -> None:
    """Write the tree's Kconfig with our tick."""
    title, line, rest = (tree / "Kconfig").read_text("utf-8").partition("\nmainmenu ")
    menu, end, rest = rest.partition("\n")
    (work / _KCONFIG).write_text(f"{title}{line}{menu}{end}{_TICK}{rest}", "utf-8")


def _missing_options(config: Path) -> list[str]:
    """The options of our configuration that this one lacks, because the tree does not define them.

    Raises:
        UserError: The kernel would have no virtual time, or not run on this machine.
    """
    have = set(config.read_text("utf-8").splitlines())
    if "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" not in have:
        raise UserError(
            "this kernel has no virtual time: UML_TIME_TRAVEL_SUPPORT is in Linux 5.9 and later, not in every tree"
        )
    wanted = [line for line in CONFIG.read_text("utf-8").splitlines() if line.endswith("=y")]
    return [line.removesuffix("=y").removeprefix("CONFIG_") for line in wanted if line not in have]


@contextlib.contextmanager
def _started(command: Sequence[str], *, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Run a program and end it, with its children, at the end of the block."""
    # In a separate group, so that one signal ends all compilers.
    process = subprocess.Popen(  # noqa: S603 - names of ours
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", start_new_session=True
    )
    with process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _output(command: Sequence[str]) -> str:
    with _started(command) as process:
        out, told = process.communicate()
    if process.returncode != 0:
        last = (told.strip() or out.strip() or "it printed nothing").splitlines()[-1]
        raise RunFailedError(f"{Path(command[0]).name} failed: {last}")
    return out
