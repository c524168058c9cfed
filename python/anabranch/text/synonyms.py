"""The field's other names for what Anabranch has: of other simulators, of Linux's ``tc`` and ``sysctl``, of papers.

The engine has the table (``crates/document/src/error/synonyms.tsv``): messages about scenarios go by it, too.
"""

from __future__ import annotations

from functools import cache


@cache
def synonyms() -> dict[str, str]:
    """Synonym, as :func:`plain` writes it, → what ``anabranch explain`` knows: a component, a key, or a path."""
    from anabranch import _engine

    return dict(_engine.synonyms())


def plain(name: str) -> str:
    """A name without case, and with hyphens for blanks and underscores."""
    return "-".join(name.lower().replace("_", " ").split())


def meant(name: str) -> str | None:
    """What a synonym stands for, by a name or path of ours; ``None`` if it is no synonym."""
    return synonyms().get(plain(name))
