"""Install the engine of a wheel in this checkout instead of compiling it, if both have the same sources.

    python tools/use_wheel.py             exit status 0: the engine is in place; 1: it has to be compiled
    python tools/use_wheel.py --check     the same status, without changes or output

ANABRANCH_WHEEL names the wheel; without it the newest matching one in dist/ is used. A wheel that
is damaged, has other sources or is for another machine is refused in one line, and the caller
compiles. Only the engine is taken from the wheel: Python sources stay those of the checkout, and
the package is installed as editable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from wheel_sources import ENGINE, FORMAT, NAME, ROOT, source_hash

VARIABLE = "ANABRANCH_WHEEL"
LIBRARY = "anabranch/_engine.abi3.so"
MOST_BYTES = 200_000_000
"""Largest accepted size of an engine."""

_LOAD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("anabranch._engine", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.version())
"""


class RefusedError(Exception):
    """A wheel cannot be used; the text gives the reason."""


def candidates(root: Path, named: str | None) -> list[Path]:
    """The candidate wheels: the named one, or those in ``dist`` for this machine, newest first."""
    if named:
        return [Path(named)]
    found = filter(is_for_this_machine, (root / "dist").glob("anabranch-*.whl"))
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def is_for_this_machine(wheel: Path) -> bool:
    """Whether a wheel's name matches this processor and libc."""
    libc = "musllinux_" if platform.libc_ver()[0] != "glibc" else "manylinux"
    tags = wheel.stem.rpartition("-")[2].split(".")
    return any(tag.startswith((libc, "linux_")) and tag.endswith(f"_{platform.machine()}") for tag in tags)


def check(wheel: Path, engine_hash: str) -> zipfile.ZipFile:
    """Open a wheel whose engine was built from the sources of this tree, for this machine.

    Raises:
        RefusedError: It is damaged, of other sources, or for another machine.
    """
    if not wheel.is_file():
        raise RefusedError("there is no such file")
    if not is_for_this_machine(wheel):
        raise RefusedError(f"it is for another machine ({wheel.stem.rpartition('-')[2]}; this is {platform.machine()})")
    try:
        content = zipfile.ZipFile(wheel)
        damaged = content.testzip()
        names = [name for name in content.namelist() if name.endswith(f".dist-info/{NAME}")]
        told = json.loads(content.read(names[0])) if len(names) == 1 else None
    except (OSError, ValueError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise RefusedError(f"it cannot be read ({error})") from None
    if damaged is not None:
        raise RefusedError(f"it is damaged: {damaged} is not as it was written")
    if told is None:
        raise RefusedError("it does not say from which sources it was built (tools/build_wheel writes that)")
    if not isinstance(told, dict) or told.get("format") != FORMAT or told.get("engine") != engine_hash:
        raise RefusedError(f"it was built from other sources than this tree ({', '.join(ENGINE)})")
    if LIBRARY not in content.namelist() or content.getinfo(LIBRARY).file_size > MOST_BYTES:
        raise RefusedError(f"it has no {LIBRARY}")
    return content


def extract(content: zipfile.ZipFile, folder: Path) -> Path:
    """Write the engine of a wheel into a folder, and load it once.

    Raises:
        RefusedError: It cannot be loaded here.
    """
    library = folder / Path(LIBRARY).name
    library.write_bytes(content.read(LIBRARY))
    library.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", _LOAD, library], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise RefusedError(f"its engine cannot be loaded here ({reason})")
    return library


def editable(content: zipfile.ZipFile, folder: Path, sources: Path) -> Path:
    """A wheel with only the metadata of ``content`` and a path to ``sources``."""
    (record,) = (name for name in content.namelist() if name.endswith(".dist-info/RECORD"))
    info = record.rpartition("/")[0]
    files = {
        name: content.read(name)
        for name in content.namelist()
        if name.startswith(f"{info}/") and name not in (record, f"{info}/{NAME}") and "/sboms/" not in name
    }
    files["anabranch.pth"] = str(sources).encode()
    made = folder / f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: anabranch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    with zipfile.ZipFile(made, "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
        wheel.writestr(record, "\n".join([*lines, f"{record},,"]) + "\n")
    return made


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def install(wheel: Path, root: Path, engine_hash: str) -> None:
    """Install the engine of a wheel in the checkout, and the package as editable.

    Raises:
        RefusedError: The wheel cannot be used.
    """
    package = root / "python/anabranch"
    with check(wheel, engine_hash) as content, tempfile.TemporaryDirectory(dir=package, prefix=".wheel-") as name:
        folder = Path(name)
        library = extract(content, folder)
        made = editable(content, folder, root / "python")
        command: list[str | Path] = [
            root / ".tools/bin/uv",
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--reinstall",
            made,
        ]
        done = subprocess.run(
            [*command, "--python", sys.executable], capture_output=True, text=True, check=False, cwd=root
        )
        if done.returncode != 0:
            raise RefusedError(f"it cannot be installed ({(done.stderr.strip().splitlines() or ['?'])[-1]})")
        # An atomic replacement: a running process keeps the engine that it has loaded.
        library.replace(package / library.name)


def is_there_one() -> bool:
    """Whether a wheel matches."""
    for wheel in candidates(ROOT, os.environ.get(VARIABLE)):
        try:
            with check(wheel, source_hash(ROOT, ENGINE)) as content, tempfile.TemporaryDirectory() as name:
                extract(content, Path(name))
        except RefusedError:
            continue
        return True
    return False


def main() -> int:
    """Use the first wheel that matches; print why others were refused."""
    if sys.argv[1:] == ["--check"]:
        return 0 if is_there_one() else 1
    engine_hash = None
    for wheel in candidates(ROOT, os.environ.get(VARIABLE)):
        engine_hash = engine_hash or source_hash(ROOT, ENGINE)
        try:
            install(wheel, ROOT, engine_hash)
        except RefusedError as refused:
            sys.stderr.write(f"anabranch: {wheel} is not used: {refused}\n")
        else:
            sys.stderr.write(f"anabranch: the engine of {wheel} is used; it was built from the same sources\n")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
