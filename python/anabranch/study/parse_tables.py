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
"""Largest number of decimal places of a cell."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


class Reader(Protocol):
    """The reader of the study that contains the table."""

    names: Names

    @property
    def experiments(self) -> Mapping[str, Experiment]:
        """The experiments that a table may use."""
        ...

    def expression(self, node: Node, key: tuple[str | int, ...], names: Names) -> Expression:
        """Read an expression."""
        ...

    def experiment_name(self, node: Node) -> str:
        """Read the experiment; default: the study's first."""
        ...

    def section_name(self, node: Node) -> str | None:
        """Read the section, if any."""
        ...

    def check_name(self, name: str, node: Node) -> None:
        """Raise an error for an invalid name."""
        ...

    def variant_label(self, name: str) -> str:
        """The label of a variant."""
        ...


def read_section(name: str, node: Node) -> Section:
    """Read ``[section.NAME]``."""
    node.reject_unknown(["title", "about"])
    return Section(name, node.text("title"), node.text("about", ""))


def read_table(reader: Reader, node: Node) -> Table:
    """Read a ``[[table]]`` with its ``[[table.column]]``.

    Raises:
        UserError: The table is wrong; the message has file, line and column.
    """
    node.reject_unknown(
        ["id", "title", "section", "experiment", "experiments", "rows", "variants", "column", "columns", "value",
         "digits", "percent", "interval", "note"]
    )  # fmt: skip
    identifier = node.file_name("id")
    if not _FILE_NAME.match(identifier):
        raise node.error(f'"{identifier}" cannot be the name of a file', "id", hint="letters, digits, - and _")
    experiment = reader.experiment_name(node)
    there = reader.experiments[experiment]
    rows = node.text("rows", "variant")
    valid = ["variant", "experiment", *there.axes]
    if rows not in valid:
        raise node.error(f'"{rows}" is no axis of the experiment {experiment}', "rows", hint=nearest(rows, valid))
    for_each = node.optional_text("columns")
    if for_each not in {None, "variant"}:
        raise node.error(f'columns = "{for_each}" has no meaning', "columns", hint='columns = "variant": one for each')
    if "variants" in node and rows != "variant" and for_each is None:
        raise node.error(f"the rows are {_rows_are(rows)}, not variants", "variants")
    experiments = _experiments(reader, node, rows)
    what = f"variant of the experiment {experiment}"
    variants = tuple(node.texts("variants", there.variants, what) or there.variants)
    columns = _given(reader, node, rows) if for_each is None else _for_each(reader, node, rows, variants)
    return Table(
        id=identifier,
        title=node.text("title"),
        section=reader.section_name(node),
        experiment=experiment,
        rows=rows,
        variants=variants,
        experiments=experiments,
        columns=columns,
        note=node.text("note", ""),
    )


def _rows_are(rows: str) -> str:
    return "experiments" if rows == "experiment" else f"values of {rows}"


def _experiments(reader: Reader, node: Node, rows: str) -> tuple[str, ...]:
    """The rows of a table with a row for each experiment; no experiment may have several points."""
    if rows != "experiment":
        if "experiments" in node:
            raise node.error("experiments are the rows of a table with", "experiments", hint='rows = "experiment"')
        return ()
    if "experiment" in node:
        raise node.error("each row is a separate experiment", "experiment", hint="experiments = [ … ]")
    chosen = node.texts("experiments", reader.names.experiments, "experiment")
    return tuple(chosen or reader.names.experiments)


def _given(reader: Reader, node: Node, rows: str) -> tuple[Column, ...]:
    """The columns of ``[[table.column]]``."""
    for key in ("value", "digits", "percent", "interval"):
        if key in node:
            raise node.error(f"{key} belongs to a column", key, hint='[[table.column]], or columns = "variant"')
    columns: list[Column] = []
    for entry in node.entries("column"):
        column = _column(reader, entry, rows)
        if column.name in {taken for c in columns for taken in c.names()}:
            raise entry.error(f'a second column "{column.name}"', "name")
        columns.append(column)
    if not columns:
        raise node.error("a table needs at least one [[table.column]]")
    return tuple(columns)


def _for_each(reader: Reader, node: Node, rows: str, variants: tuple[str, ...]) -> tuple[Column, ...]:
    """A column for each variant, all with the table's ``value``."""
    if rows == "variant":
        raise node.error("rows and columns cannot both be variants", "columns", hint='rows = "experiment", or an axis')
    if "column" in node:
        raise node.error('the columns are the variants, with columns = "variant"', "column", 0)
    taken = sorted({rows, "label"}.intersection(variants))
    if taken:
        raise node.error(f'"{taken[0]}" is what a row is called, and a variant', "columns")
    value = _value(reader, node)
    digits = _digits(node)
    return tuple(
        Column(
            name=variant,
            title=reader.variant_label(variant),
            value=value,
            at=None,
            at_form="{}",
            digits=digits,
            percent=node.flag("percent", False),
            without=(),
            full_only=False,
            interval=node.flag("interval", False),
            variant=variant,
        )
        for variant in variants
    )


def _column(reader: Reader, node: Node, rows: str) -> Column:
    node.reject_unknown(
        ["name", "title", "value", "at", "at_form", "digits", "percent", "without", "full_only", "interval"]
    )
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
        raise node.error(f"the rows are {_rows_are(rows)}, not variants", "without")
    return Column(
        name=name,
        title=node.text("title", name.replace("_", " ")),
        value=_value(reader, node),
        at=reader.expression(node, ("at",), reader.names) if "at" in node else None,
        at_form=form,
        digits=_digits(node),
        percent=node.flag("percent", False),
        without=tuple(node.texts("without", reader.names.variants, "variant") or ()),
        full_only=node.flag("full_only", False),
        interval=node.flag("interval", False),
    )


def _value(reader: Reader, node: Node) -> Expression:
    if "value" not in node:
        raise node.error('"value" is missing: an expression')
    return reader.expression(node, ("value",), reader.names)


def _digits(node: Node) -> int | None:
    if "digits" not in node:
        return None
    value = node.value["digits"]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_DIGITS:
        raise node.error(f"digits must be a whole number of 0 to {MAX_DIGITS}", "digits")
    return value
