"""Other names for Anabranch's items: of other simulators, of Linux's ``tc`` and ``sysctl``, of papers.

The table is in the engine (``crates/document/src/error/synonyms.tsv``), whose messages also use it.
"""

from __future__ import annotations

from functools import cache


@cache
def synonyms() -> dict[str, str]:
    """Synonym, in the form of :func:`plain`, → a name of ``anabranch explain``: a component, a key, or a path."""
    from anabranch import _engine

    return dict(_engine.synonyms())


def plain(name: str) -> str:
    """A name without case, and with hyphens for blanks and underscores."""
    return "-".join(name.lower().replace("_", " ").split())


def meant(name: str) -> str | None:
    """The name or path that a synonym means; ``None`` if it is no synonym."""
    return synonyms().get(plain(name))
