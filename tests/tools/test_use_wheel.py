"""tools/use_wheel.py and tools/wheel_sources.py: the sources of a wheel, and its use by a checkout."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wheel_sources import ENGINE, NAME, TREE, source_files, source_hash, stamp

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "python/anabranch/_engine.abi3.so"
MACHINE = platform.machine()
FITS = f"anabranch-0.1.0-cp310-abi3-manylinux_2_17_{MACHINE}.manylinux2014_{MACHINE}.whl"

SOURCES = {
    "Cargo.toml": "[workspace]\n", "Cargo.lock": "", "pyproject.toml": "[project]\n", "crates/a/src/lib.rs": "//! A.\n",
    "bpf/cc/a.bpf.c": "int a;\n", "python/anabranch/__init__.py": "WHERE = 'checkout'\n",
}  # fmt: skip


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a separate environment."""
    _write(tmp_path, SOURCES)
    for name in ("use_wheel.py", "wheel_sources.py"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    venv.create(tmp_path / ".venv", symlinks=True)
    (tmp_path / ".tools/bin").mkdir(parents=True)
    (tmp_path / ".tools/bin/uv").symlink_to(ROOT / ".tools/bin/uv")
    return tmp_path


@pytest.fixture
def wheel(tree: Path) -> Path:
    """A wheel of its sources, for this machine."""
    return make(tree, "dist/" + FITS)


def make(tree: Path, name: str, library: bytes | None = None, *, stamped: bool = True) -> Path:
    path = tree / name
    path.parent.mkdir(exist_ok=True)
    info = "anabranch-0.1.0.dist-info"
    files = {
        "anabranch/__init__.py": b"WHERE = 'wheel'\n",
        "anabranch/_engine.abi3.so": LIBRARY.read_bytes() if library is None else library,
        f"{info}/METADATA": b"Metadata-Version: 2.4\nName: anabranch\nVersion: 0.1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n",
        f"{info}/entry_points.txt": b"[console_scripts]\nanabranch=anabranch.entry:main\n",
        f"{info}/RECORD": f"{info}/RECORD,,\n".encode(),
    }
    with zipfile.ZipFile(path, "w") as content:
        for inside, data in files.items():
            content.writestr(inside, data)
    if stamped:
        stamp(path, tree)
    return path


def use(tree: Path, *arguments: str, named: str | None = None) -> tuple[int, str]:
    environment = {key: value for key, value in os.environ.items() if key != "ANABRANCH_WHEEL"}
    if named is not None:
        environment["ANABRANCH_WHEEL"] = named
    done = subprocess.run(
        [tree / ".venv/bin/python", tree / "tools/use_wheel.py", *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def imported(tree: Path) -> str:
    code = "import anabranch, anabranch._engine as e; print(anabranch.WHERE, e.version(), anabranch.__file__)"
    done = subprocess.run([tree / ".venv/bin/python", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_engine_comes_from_the_wheel_and_python_from_the_checkout(tree: Path, wheel: Path) -> None:
    status, said = use(tree)
    assert status == 0, said
    assert said == f"anabranch: the engine of {wheel} is used; it was built from the same sources\n"
    package = tree / "python/anabranch"
    assert imported(tree) == f"checkout 0.1.0 {package / '__init__.py'}"
    (package / "__init__.py").write_text("WHERE = 'edited'\n", "utf-8")
    assert imported(tree).startswith("edited ")
    assert (tree / ".venv/bin/anabranch").is_file()
    assert sorted(path.name for path in package.iterdir() if not path.name.startswith("__pyc")) == [
        "__init__.py", "_engine.abi3.so",
    ]  # fmt: skip


def test_an_edit_of_python_keeps_the_engine_usable(tree: Path, wheel: Path) -> None:
    (tree / "python/anabranch/__init__.py").write_text("WHERE = 'edited'\n", "utf-8")
    assert use(tree)[0] == 0
    assert wheel.exists()


def _edited(tree: Path) -> str:
    (tree / "crates/a/src/lib.rs").write_text("//! B.\n", "utf-8")
    return FITS


def _unstamped(tree: Path) -> str:
    make(tree, "dist/" + FITS, stamped=False)
    return FITS


def _cut(tree: Path) -> str:
    path = tree / "dist" / FITS
    path.write_bytes(path.read_bytes()[:100_000])
    return FITS


def _changed(tree: Path) -> str:
    path = tree / "dist" / FITS
    content = bytearray(path.read_bytes())
    content[5_000_000] ^= 1
    path.write_bytes(content)
    return FITS


def _no_engine(tree: Path) -> str:
    make(tree, "dist/" + FITS, b"\x7fELF but no more")
    return FITS


def _other_machine(tree: Path) -> str:
    name = "anabranch-0.1.0-cp310-abi3-manylinux_2_17_sparc64.whl"
    make(tree, f"dist/{name}")
    return name


def _other_libc(tree: Path) -> str:
    name = f"anabranch-0.1.0-cp310-abi3-musllinux_1_2_{MACHINE}.whl"
    make(tree, f"dist/{name}")
    return name


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_edited, "it was built from other sources than this tree"),
        (_unstamped, "it does not say from which sources it was built"),
        (_cut, "it cannot be read"),
        (_changed, "it is damaged: anabranch/_engine.abi3.so"),
        (_no_engine, "its engine cannot be loaded here"),
        (_other_machine, "it is for another machine (manylinux_2_17_sparc64"),
        (_other_libc, "it is for another machine (musllinux_1_2_"),
        (lambda _tree: "none.whl", "there is no such file"),
    ],
)
def test_a_wheel_that_does_not_match_is_refused_in_one_line(
    tree: Path, wheel: Path, spoil: Callable[[Path], str], reason: str
) -> None:
    named = wheel.parent / spoil(tree)
    status, said = use(tree, named=str(named))
    assert status == 1
    assert said.startswith(f"anabranch: {named} is not used: {reason}")
    assert said.count("\n") == 1
    assert not (tree / "python/anabranch/_engine.abi3.so").exists()
    assert not (tree / ".venv/bin/anabranch").exists()


def test_the_newest_matching_wheel_is_used(tree: Path, wheel: Path) -> None:
    newer = wheel.with_name(wheel.name.replace("0.1.0", "0.1.1"))
    newer.write_bytes(b"no wheel")
    os.utime(wheel, (1, 1))
    _other_libc(tree)
    status, said = use(tree)
    assert status == 0
    # Wheels for other machines in the folder are not mentioned.
    assert [line.split()[1] for line in said.splitlines()] == [str(newer), "the"]


def test_a_check_changes_nothing(tree: Path, wheel: Path) -> None:
    assert use(tree, "--check") == (0, "")
    wheel.unlink()
    assert use(tree, "--check") == (1, "")
    assert use(tree) == (1, "")
    assert not (tree / "python/anabranch/_engine.abi3.so").exists()


@pytest.mark.parametrize("name", ["Cargo.toml", "crates/a/src/lib.rs", "crates/a/src/new.rs", "bpf/cc/a.bpf.c"])
def test_every_source_of_the_engine_affects_the_hash(tmp_path: Path, name: str) -> None:
    _write(tmp_path, SOURCES)
    before = source_hash(tmp_path, ENGINE)
    _write(tmp_path, {name: "other\n"})
    assert source_hash(tmp_path, ENGINE) != before


def test_a_moved_file_changes_the_hash(tmp_path: Path) -> None:
    """Detects a hash over contents alone, and one without separators between paths and contents."""
    hashes = set()
    for number, files in enumerate(({"crates/ab": "c"}, {"crates/a": "bc"}, {"crates/a": "", "crates/b": "c"})):
        _write(tmp_path / str(number), files)
        hashes.add(source_hash(tmp_path / str(number), ENGINE))
    assert len(hashes) == 3


def test_build_leftovers_do_not_affect_the_hash(tmp_path: Path) -> None:
    _write(tmp_path, SOURCES)
    before, engine = source_hash(tmp_path, TREE), source_hash(tmp_path, ENGINE)
    _write(tmp_path, {
        "python/anabranch/__pycache__/a.pyc": "", "python/anabranch/_engine.abi3.so": "", "crates/a/.a.rs.swp": "",
        "crates/a/target/debug/a": "", "docs/index.md": "", "crates/a/tests/a.snap.new": "",
    })  # fmt: skip
    assert source_hash(tmp_path, TREE) == before
    _write(tmp_path, {"python/anabranch/new.py": ""})
    assert source_hash(tmp_path, TREE) != before
    assert source_hash(tmp_path, ENGINE) == engine


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone")
def test_no_tracked_source_is_omitted() -> None:
    command = [shutil.which("git") or "git", "ls-files", "-z", "--", *TREE]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    tracked = {name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)}
    assert tracked <= {path.relative_to(ROOT).as_posix() for path in source_files(ROOT, TREE)}


def test_a_stamped_wheel_lists_its_stamp(tree: Path, wheel: Path) -> None:
    before = wheel.read_bytes()
    stamp(wheel, tree)
    assert wheel.read_bytes() == before
    with zipfile.ZipFile(wheel) as content:
        info = "anabranch-0.1.0.dist-info"
        told = json.loads(content.read(f"{info}/{NAME}"))
        assert told == {"format": 1, "engine": source_hash(tree, ENGINE), "tree": source_hash(tree, TREE)}
        record = content.read(f"{info}/RECORD").decode().splitlines()
    assert record[-1] == f"{info}/RECORD,,"
    assert record[-2].startswith(f"{info}/{NAME},sha256=")
