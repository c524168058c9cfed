"""The tables of items and checks in the guide to evaluations, from the package's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.evaluate.check import Check
from anabranch.evaluate.evaluation import checks_of
from anabranch.evaluate.items import DOCUMENTS, ITEMS, Item

from reference import markdown

ROLES = ("control", "queue")


def fill(page: str) -> str:
    """Return the page with the tables inserted.

    Raises:
        SystemExit: The page has no markers for a table.
    """
    for name, content in (("items", _items()), ("checks", _checks())):
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"docs/guides/evaluate.md: expected {begin.strip()} and {end}")
        page = f"{before}{begin}\n{content}\n\n{end}{after}"
    return page


def _items() -> str:
    parts = []
    for document, title in DOCUMENTS.items():
        rows = [_row(item) for item in ITEMS if item.document == document]
        parts.append(
            f"### {document}: {title}\n\n{markdown.table(('§', 'item', 'checks, or the reason for none'), rows)}"
        )
    return "\n\n".join(parts)


def _row(item: Item) -> Sequence[str]:
    checks = ", ".join(markdown.code(name) for name in item.checks)
    if not checks:
        return item.section, item.title, f"Not evaluated, because {item.why_not}."
    return item.section, item.title, f"{checks}. Left out: {item.why_not}." if item.why_not else checks


def _checks() -> str:
    head = ("check", "property and scenarios", "criterion", "source of the criterion")
    return markdown.table(head, list(_rows()))


def _rows() -> Iterator[Sequence[str]]:
    for role in ROLES:
        for check in checks_of(role):
            yield _row_of(check)


def _row_of(check: Check) -> Sequence[str]:
    return markdown.code(check.id), f"{check.title}. {check.about}", check.criterion, check.source
