"""The sections and tables of a ``study.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from anabranch.errors import nearest
from anabranch.study.definition import Column, Experiment, Section, Table
from anabranch.study.document import Node
from anabranch.study.expression import Expression, Names

MAX_DIGITS = 12
"""Decimal places of a cell."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


class Reader(Protocol):
    """What is known of the study that a table is part of."""

    names: Names

    @property
    def experiments(self) -> Mapping[str, Experiment]:
        """The experiments that a table may be made from."""
        ...

    def expression(self, node: Node, key: tuple[str | int, ...], names: Names) -> Expression:
        """Read an expression."""
        ...

    def experiment_name(self, node: Node) -> str:
        """Read the experiment that is meant where none is named."""
        ...

    def section_name(self, node: Node) -> str | None:
        """Read the section, if any."""
        ...

    def check_name(self, name: str, node: Node) -> None:
        """Refuse what cannot be a name."""
        ...


def read_section(name: str, node: Node) -> Section:
    """Read ``[section.NAME]``."""
    node.reject_unknown(["title", "about"])
    return Section(name, node.text("title"), node.text("about", ""))


def read_table(reader: Reader, node: Node) -> Table:
    """Read a ``[[table]]`` with its ``[[table.column]]``.

    Raises:
        UserError: It is wrong; the message has file, line and column.
    """
    node.reject_unknown(["id", "title", "section", "experiment", "rows", "variants", "column", "note"])
    identifier = node.text("id")
    if not _FILE_NAME.match(identifier):
        raise node.error(f'"{identifier}" cannot be the name of a file', "id", hint="letters, digits, - and _")
    experiment = reader.experiment_name(node)
    there = reader.experiments[experiment]
    rows = node.text("rows", "variant")
    valid = ["variant", *there.axes]
    if rows not in valid:
        raise node.error(f'"{rows}" is no axis of the experiment {experiment}', "rows", hint=nearest(rows, valid))
    if rows != "variant" and "variants" in node:
        raise node.error(f"the rows are values of {rows}, not variants", "variants")
    columns: list[Column] = []
    for entry in node.entries("column"):
        column = _column(reader, entry, rows)
        if column.name in {taken for c in columns for taken in (c.name, f"{c.name}_at" if c.at else "")}:
            raise entry.error(f'a second column "{column.name}"', "name")
        columns.append(column)
    if not columns:
        raise node.error("a table needs at least one [[table.column]]")
    what = f"variant of the experiment {experiment}"
    return Table(
        id=identifier,
        title=node.text("title"),
        section=reader.section_name(node),
        experiment=experiment,
        rows=rows,
        variants=tuple(node.texts("variants", there.variants, what) or there.variants),
        columns=tuple(columns),
        note=node.text("note", ""),
    )


def _column(reader: Reader, node: Node, rows: str) -> Column:
    node.reject_unknown(["name", "title", "value", "at", "at_form", "digits", "percent", "without", "full_only"])
    name = node.text("name")
    reader.check_name(name, node)
    if name in {rows, "label"}:
        raise node.error(f'"{name}" is what a row is called', "name")
    if "at_form" in node and "at" not in node:
        raise node.error('"at_form" needs at: what stands there', "at_form")
    form = node.text("at_form", "{}")
    if form.count("{}") != 1:
        raise node.error("at_form needs one {} for the value", "at_form", hint='at_form = "RI {}"')
    if "without" in node and rows != "variant":
        raise node.error(f"the rows are values of {rows}, not variants", "without")
    digits = None
    if "digits" in node:
        value = node.value["digits"]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_DIGITS:
            raise node.error(f"digits must be a whole number of 0 to {MAX_DIGITS}", "digits")
        digits = value
    if "value" not in node:
        raise node.error('"value" is missing: an expression')
    return Column(
        name=name,
        title=node.text("title", name.replace("_", " ")),
        value=reader.expression(node, ("value",), reader.names),
        at=reader.expression(node, ("at",), reader.names) if "at" in node else None,
        at_form=form,
        digits=digits,
        percent=node.flag("percent", False),
        without=tuple(node.texts("without", reader.names.variants, "variant") or ()),
        full_only=node.flag("full_only", False),
    )
