"""Optional packages: a missing one is reported before any work, with the command that installs it."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.errors import UserError

_EXTRAS = {"polars": "tables", "matplotlib": "figures", "gymnasium": "gym"}
_WITHOUT = {
    "polars": "without polars tables are CSV",
    "matplotlib": "without matplotlib there are no figures",
}

WITHOUT_FIGURES = "Figures are left out: matplotlib is not installed (pip install 'anabranch[figures]')."
"""Remark of pages without figures."""


def is_installed(package: str) -> bool:
    """Whether an optional package can be imported. It is not imported here, which would be slow."""
    import importlib.util

    return importlib.util.find_spec(package) is not None


def need(package: str, purpose: str) -> None:
    """Refuse work that needs a missing optional package.

    Args:
        package: ``"polars"``, ``"matplotlib"`` or ``"gymnasium"``.
        purpose: The subject of the message: the feature that needs it.

    Raises:
        UserError: It is not installed.
    """
    if not is_installed(package):
        raise UserError(f"{purpose} needs {package}, which is not installed", hint=advice(package))


def advice(package: str) -> str:
    """The command that installs an optional package with all that Anabranch can use."""
    return f"pip install 'anabranch[{_EXTRAS[package]}]'"


def remark_once(note: Callable[[str], None], *packages: str) -> None:
    """Report the parts that results lack, with one command that installs all missing packages.

    Args:
        note: Writes a line.
        packages: The optional packages that these results use.
    """
    missing = [name for name in packages if not is_installed(name)]
    if missing:
        extras = ",".join(_EXTRAS[name] for name in missing)
        note(f"{' and '.join(_WITHOUT[name] for name in missing)}: pip install 'anabranch[{extras}]'")
