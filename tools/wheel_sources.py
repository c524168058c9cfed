"""Hash of an engine's sources, written into each wheel and compared by tools/use_wheel.py.

    python tools/wheel_sources.py                  print both hashes of this tree
    python tools/wheel_sources.py --stamp WHEEL…   write them into wheels that were just built from it

Files are read from the folders, not from Git, so that a source archive has the same hash as a
clone. The hash covers the path and content of each file, in the order of the paths.
"""

from __future__ import annotations

import argparse
import base64
import fnmatch
import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ENGINE = ("Cargo.lock", "Cargo.toml", "bpf", "crates", "pyproject.toml")
"""Sources of the engine; tools/bootstrap rebuilds it if one of them is newer."""
TREE = (*ENGINE, "python")
"""Sources of a wheel."""
NAME = "anabranch-sources.json"
"""The file inside a wheel's ``.dist-info``."""
FORMAT = 1

_PASSED_OVER = ("__pycache__", "*.pyc", "*.so", "*.egg-info", "*.snap.new", ".*", "target")
"""Files that builds and editors leave in the tree. Links are hashed as links."""


def source_files(root: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """The files below some folders of a tree, by path."""
    found: list[Path] = []
    for name in names:
        place = root / name
        if place.is_file():
            found.append(place)
        for folder, folders, files in os.walk(place):
            folders[:] = [one for one in folders if not _is_passed_over(one)]
            links = [one for one in folders if (Path(folder) / one).is_symlink()]
            found += [Path(folder) / one for one in (*files, *links) if not _is_passed_over(one)]
    yield from sorted(found, key=lambda path: path.relative_to(root).as_posix())


def _is_passed_over(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _PASSED_OVER)


def source_hash(root: Path, names: tuple[str, ...]) -> str:
    """SHA-256 over the sources below some folders of a tree."""
    whole = hashlib.sha256()
    for path in source_files(root, names):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        name = path.relative_to(root).as_posix()
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()


def document(root: Path) -> dict[str, object]:
    """The document written into a wheel."""
    return {"format": FORMAT, "engine": source_hash(root, ENGINE), "tree": source_hash(root, TREE)}


def stamp(wheel: Path, root: Path) -> None:
    """Write the hashes into a wheel and list them in its RECORD; the wheel is replaced atomically."""
    content = (json.dumps(document(root), indent=1) + "\n").encode()
    made = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        (record,) = (name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        target = f"{record.rpartition('/')[0]}/{NAME}"
        listed = [line for line in old.read(record).decode().splitlines() if not line.startswith(f"{target},")]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        listed.insert(-1, f"{target},sha256={digest},{len(content)}")
        for item in old.infolist():
            if item.filename not in (record, target):
                with old.open(item) as source, new.open(item, "w") as copy:
                    shutil.copyfileobj(source, copy)
        # The same times as the wheel's other files, so that equal sources give equal wheels.
        for name, text in ((target, content), (record, ("\n".join(listed) + "\n").encode())):
            place = zipfile.ZipInfo(name, old.getinfo(record).date_time)
            place.external_attr = old.getinfo(record).external_attr
            place.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(place, text)
    made.replace(wheel)


def main() -> int:
    """Print the hashes, or write them into wheels."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--stamp", nargs="+", metavar="WHEEL", type=Path, default=[])
    wheels: list[Path] = parser.parse_args().stamp
    for wheel in wheels:
        stamp(wheel, ROOT)
    if not wheels:
        sys.stdout.write(json.dumps(document(ROOT), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
