"""tools/build_wheel uses a profile if rustc has its llvm-profdata, and builds for each installed target."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOST = "x86_64-unknown-linux-gnu"
ARM = "aarch64-unknown-linux-gnu"

CARGO = "#!/bin/sh\necho cargo 1.99.0\n"
# Prints its version, its host and the folder of its tools.
RUSTC = f"""#!/bin/sh
case "$*" in
    "--print sysroot") echo "$SYSROOT" ;;
    "--print target-libdir"*) echo "$SYSROOT/$4" ;;
    *) printf 'rustc 1.99.0\\nhost: {HOST}\\n' ;;
esac
"""
MATURIN = """#!/bin/sh
echo "$RUSTFLAGS | $*" >>"$CALLS"
while [ "$1" != --out ]; do shift; done
mkdir -p "$2" && cp "$EMPTY_WHEEL" "$2/empty.whl"
[ -z "${EDITED:-}" ] || touch "$EDITED"
"""
PYTHON = f"""#!/bin/sh
case "$*" in
    *anabranch*) echo "$PYTHONPATH | $*" >>"$CALLS" ;;
    *) exec {sys.executable} "$@" ;;
esac
"""
PROFDATA = """#!/bin/sh
echo "profdata $*" >>"$CALLS"
"""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def _build(
    tree: Path, *arguments: str, profdata: bool, targets: Sequence[str] = (HOST, ARM), status: int = 0, edited: str = ""
) -> tuple[list[str], str]:
    """The calls in order, and the output; ``edited`` is a file that appears during the build."""
    for name in ("build_wheel", "toolchain.sh", "wheel.lock", "wheel_sources.py"):
        (tree / "tools").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tools" / name, tree / "tools" / name)
    (tree / ".tools/stamps").mkdir(parents=True)
    shutil.copy(ROOT / "tools/wheel.lock", tree / ".tools/stamps/wheel.lock")
    _write(tree / ".tools/wheel/bin/maturin", MATURIN)
    _write(tree / ".venv/bin/python", PYTHON)
    _write(tree / "rust/cargo", CARGO)
    _write(tree / "rust/rustc", RUSTC)
    if profdata:
        _write(tree / "sysroot/lib/rustlib" / HOST / "bin/llvm-profdata", PROFDATA)
    for target in targets:
        _write(tree / "sysroot" / target / "libstd-0.rlib", "")
    with zipfile.ZipFile(tree / "empty", "w") as wheel:
        wheel.writestr("anabranch/__init__.py", "")
        wheel.writestr("anabranch-0.1.0.dist-info/RECORD", "anabranch-0.1.0.dist-info/RECORD,,\n")
    environment = {
        **os.environ,
        "PATH": f"{tree / 'rust'}:{os.environ['PATH']}",
        "SYSROOT": str(tree / "sysroot"),
        "EMPTY_WHEEL": str(tree / "empty"),
        "CALLS": str(tree / "calls"),
        "RUSTFLAGS": "-Copt-level=3",
        "EDITED": str(tree / edited) if edited else "",
    }
    done = subprocess.run(
        [tree / "tools/build_wheel", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    calls = tree / "calls"
    return calls.read_text("utf-8").splitlines() if calls.exists() else [], done.stderr


@pytest.mark.parametrize("arguments", [(), ("--target", HOST)], ids=["plain", "own target"])
def test_a_wheel_is_optimized_by_the_profile_of_its_first_build(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    calls, _ = _build(tmp_path, *arguments, profdata=True)
    first, *runs, merge, last = calls
    assert first.startswith(f"-Copt-level=3 -Cprofile-generate={tmp_path}/target/pgo/raw | ")
    assert "--out target/pgo" in first
    assert len(runs) > 3
    for run in runs:
        path, command = run.split(" | ")
        assert path == f"{tmp_path}/target/pgo/python"
        assert (ROOT / command.split()[-1]).is_file(), command
    assert merge == "profdata merge -o target/pgo/profile target/pgo/raw"
    assert last.startswith(f"-Copt-level=3 -Cprofile-use={tmp_path}/target/pgo/profile | ")
    assert "--out dist" in last
    assert (tmp_path / "dist/empty.whl").is_file()


@pytest.mark.parametrize(
    ("arguments", "profdata"),
    [((), False), (("--target", ARM), True)],
    ids=["no profdata", "another machine"],
)
def test_without_a_profile_a_wheel_is_built_once(tmp_path: Path, arguments: tuple[str, ...], profdata: bool) -> None:
    calls, said = _build(tmp_path, *arguments, profdata=profdata)
    assert len(calls) == 1
    assert "profile" not in calls[0]
    assert "--out dist" in calls[0]
    assert "without a profile" in said


def test_a_wheel_records_its_sources(tmp_path: Path) -> None:
    _build(tmp_path, profdata=False)
    with zipfile.ZipFile(tmp_path / "dist/empty.whl") as wheel:
        assert "anabranch-0.1.0.dist-info/anabranch-sources.json" in wheel.namelist()


def test_a_wheel_of_sources_changed_during_the_build_is_removed(tmp_path: Path) -> None:
    (tmp_path / "crates").mkdir()
    _, said = _build(tmp_path, profdata=False, edited="crates/new.rs", status=1)
    assert "the sources changed while the wheel was built" in said
    assert not list((tmp_path / "dist").iterdir())


def test_all_builds_a_wheel_for_each_installed_target(tmp_path: Path) -> None:
    musl = "x86_64-unknown-linux-musl"
    calls, said = _build(tmp_path, "--all", profdata=False, targets=(ARM, musl))
    words = [call.partition(" | ")[2].split() for call in calls]
    assert [(one[one.index("--compatibility") + 1], one[-1]) for one in words] == [
        ("manylinux_2_17", HOST), ("manylinux_2_17", ARM), ("musllinux_1_2", musl),
    ]  # fmt: skip
    (missing,) = (line for line in said.splitlines() if "no wheel for" in line)
    assert "aarch64-unknown-linux-musl" in missing


def test_a_missing_target_is_refused_with_its_installation(tmp_path: Path) -> None:
    calls, said = _build(tmp_path, "--target", ARM, profdata=False, targets=(), status=2)
    assert calls == []
    assert f"rustup target add {ARM}" in said
