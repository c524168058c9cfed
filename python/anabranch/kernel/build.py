"""Building a kernel that runs in virtual time, from a distribution's or a user's source."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from anabranch.errors import RunFailedError, UserError, nearest
from anabranch.kernel.images import FACTS, INIT, LINUX, Image, cache, numbers, read
from anabranch.kernel.machine import Job

PROGRAMS = {"make": "make", "cc": "gcc libc6-dev", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils"}
"""What a build needs, and Debian's packages of it."""
ARCHIVES = Path("/usr/src")
"""Where Debian's packages put sources of kernels."""
PARTS = 1750
"""Files that a build compiles, about."""
_HERE = Path(__file__).parent
CONFIG = _HERE / "guest" / "config"
_INIT_SOURCE = _HERE / "guest" / "init.c"
_NAME = re.compile(r"linux-source-(\d+\.\d+)\.tar\.(xz|zst|bz2)")
_SLEPT_S = 1000

Say = Callable[[str], None]


def recipe() -> str:
    """Hash of what the kernel is built with: its configuration and the guest's first process."""
    return hashlib.sha256(CONFIG.read_bytes() + _INIT_SOURCE.read_bytes()).hexdigest()[:12]


def archives() -> dict[str, Path]:
    """Sources that are installed, by version, the newest first."""
    try:
        found = {match[1]: path for path in ARCHIVES.iterdir() if (match := _NAME.fullmatch(path.name))}
    except OSError:
        return {}
    return dict(sorted(found.items(), key=lambda item: numbers(item[0]), reverse=True))


def build(source: str | None, *, jobs: int | None = None, say: Say = lambda _: None) -> Image:
    """Build a kernel and try it; one of the same source and recipe is taken as it is.

    Args:
        source: A tree, an archive, or a version of Debian's (``"6.12"``); the newest installed one when left out.
        jobs: Compilers at once; as many as there are processors when left out.
        say: Is told what is done.

    Raises:
        UserError: There is no such source, or a program is missing.
        RunFailedError: The build failed, or what was built does not run.
    """
    place = _source(source, say)
    _check_programs(say)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".building-") as folder:
        work = Path(folder)
        tree = place if place.is_dir() else _unpacked(place, work, say)
        made = work / "image"
        made.mkdir()
        _compile(tree, work, made, jobs or os.cpu_count() or 1, say)
        release = _output(["make", "-s", "-C", str(tree), f"O={work / 'objects'}", "ARCH=um", "kernelrelease"]).strip()
        facts = {"release": release, "recipe": recipe(), "source": str(place)}
        (made / FACTS).write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        image = read(made)
        if image is None:
            raise RunFailedError(f"the build of {place} left no kernel")
        say(f"trying Linux {release}")
        check(image)
        target = cache() / f"{release}-{recipe()}"
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    found = read(target)
    assert found is not None  # noqa: S101 - it was moved as it was
    return found


def check(image: Image) -> None:
    """See to it that a kernel runs, and that its time is virtual: a long sleep ends at once.

    Raises:
        RunFailedError: It does not.
    """
    with Job() as job:
        ended = job.run(
            image, ["sh", "-c", f"sleep {_SLEPT_S}; cut -d ' ' -f 1 /proc/uptime"], memory_mib=256, silence_s=20
        )
    try:
        uptime = float(ended.out)
    except ValueError:
        uptime = 0.0
    if ended.status != 0 or uptime < _SLEPT_S:
        raise RunFailedError(
            f"Linux {image.release} ran, but its time is not virtual: {ended.err.strip() or ended.out.strip()}"
        )


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
    if source is not None and source in there:
        return there[source]
    package = f"linux-source-{source}" if source else "linux-source"
    if not _installs([package], say):
        known = f"; {nearest(source, there)}" if source and there else ""
        raise UserError(
            f"no source of Linux {source or ''} is installed in {ARCHIVES}".replace("  ", " "),
            hint=f"type: {_become()}apt-get install {package}, or name a tree: anabranch kernel build DIR{known}",
        )
    there = archives()
    found = there.get(source or "") or next(iter(there.values()), None)
    if found is None:
        raise UserError(f"the package {package} has no source archive in {ARCHIVES}")
    return found


def _check_programs(say: Say) -> None:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    packages = [package for name in missing for package in PROGRAMS[name].split()]
    if missing and not _installs(packages, say):
        raise UserError(
            f"building a kernel needs {', '.join(missing)}",
            hint=f"type: {_become()}apt-get install {' '.join(packages)}",
        )


def _installs(packages: Sequence[str], say: Say) -> bool:
    """As root on Debian: install packages; whether that was done."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or not Path("/etc/debian_version").exists():
        return False
    say(f"installing {' '.join(packages)} from the distribution's packages")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - names of ours
    return done.returncode == 0


def _become() -> str:
    return "" if os.geteuid() == 0 else "sudo "


def _unpacked(archive: Path, work: Path, say: Say) -> Path:
    say(f"unpacking {archive.name}")
    _output(["tar", "-C", str(work), "-xf", str(archive)])
    trees = [path for path in work.iterdir() if (path / "arch" / "um").is_dir()]
    if len(trees) != 1:
        raise UserError(f"{archive} is no archive of Linux's source")
    return trees[0]


def _compile(tree: Path, work: Path, made: Path, jobs: int, say: Say) -> None:
    objects = work / "objects"
    objects.mkdir()
    make = ["make", "-C", str(tree), f"O={objects}", "ARCH=um"]
    _output([*make, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"])
    _check_config(objects / ".config")
    say("compiling: a few minutes")
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - names of ours
        [*make, f"-j{jobs}", "linux"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        parts = 0
        for line in process.stdout or ():
            lines = [*lines[-40:], line.rstrip()]
            parts += line.lstrip().startswith(("CC ", "AS "))
            if parts and parts % 175 == 0 and line.lstrip().startswith("CC "):
                say(f"{min(99, round(100 * parts / PARTS))} %")
    if process.returncode != 0:
        wrong = [line for line in lines if "error" in line.lower()] or lines[-1:]
        raise RunFailedError(f"the kernel does not compile: {wrong[0]}")
    shutil.copy2(objects / LINUX, made / LINUX)
    _output(["strip", str(made / LINUX)])
    _output(["cc", "-O2", "-static", "-o", str(made / INIT), str(_INIT_SOURCE)])


def _check_config(config: Path) -> None:
    """Refuse a tree that does not know what virtual time takes."""
    have = set(config.read_text("utf-8").splitlines())
    if "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" not in have:
        raise UserError("this kernel has no virtual time: UML_TIME_TRAVEL_SUPPORT is in Linux 5.9 and later")


def missing_options(config: Iterable[str]) -> list[str]:
    """Options of ours that a configuration does not have, because the tree does not know them."""
    have = set(config)
    wanted = [line for line in CONFIG.read_text("utf-8").splitlines() if line.endswith("=y")]
    return [line.removesuffix("=y").removeprefix("CONFIG_") for line in wanted if line not in have]


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")  # noqa: S603 - ours
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
        raise RunFailedError(f"{Path(command[0]).name} failed: {last}")
    return done.stdout
