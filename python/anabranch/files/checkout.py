"""Studies and scenarios that ship with the package, and the checkout, if there is one, whose studies come first."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def find_checkout() -> Path | None:
    """The root of the checkout around the working directory or around this package, whichever comes first."""
    for start in (Path.cwd(), _PACKAGE):
        for directory in (start, *start.parents):
            if (directory / "crates").is_dir() and (directory / "python" / "anabranch").is_dir():
                return directory
    return None


def is_checkout() -> bool:
    """Whether this package is in a checkout, whose command is ``.venv/bin/anabranch``."""
    return (_PACKAGE.parents[1] / "tools" / "bootstrap").is_file()


def study_roots() -> list[Path]:
    """Directories that hold the studies that ship: the checkout's, then the installed package's."""
    checkout = find_checkout()
    roots = [checkout / "studies"] if checkout else []
    roots.append(_PACKAGE / "studies")
    return [root for root in roots if root.is_dir()]


def shipped_studies() -> dict[str, Path]:
    """Name → directory of every study that ships."""
    found: dict[str, Path] = {}
    for root in study_roots():
        for path in sorted(root.iterdir()):
            if (path / "study.toml").is_file():
                found.setdefault(path.name, path)
    return found


def shipped_scenarios() -> dict[str, Path]:
    """Name → file of every ready-made scenario; ``starter`` is the commented one."""
    files = sorted((_PACKAGE / "scenarios").glob("*.toml"))
    return {"starter": _PACKAGE / "starter.toml", **{path.stem: path for path in files}}
