"""Tables of results in plain Python: columns, rows, dictionaries, and the Arrow interface for other libraries.

The reports read them, with or without polars. ``result.table(…)`` returns one if polars is not installed
(docs/design/040-optional-packages.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.extras import is_installed

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from anabranch._engine import ArrowTable

    Mask = NDArray[np.bool_]

PlainColumn = tuple[str, str, bytes, "bytes | None", "list[str] | None"]
"""A column as exchanged with the engine: name, kind, octets, validity, distinct strings."""


class Column:
    """Values of one kind.

    Attributes:
        kind: ``"f8"``, ``"u8"``, ``"u4"``, ``"i8"``, ``"?"``, ``"text"``, or ``"object"`` for lists.
        values: The numbers; for text, an index into ``names`` for each row.
        valid: Whether each row has a value; ``None`` if all have one.
        names: The distinct strings of a text column.
    """

    __slots__ = ("kind", "names", "valid", "values")

    def __init__(self, kind: str, values: NDArray[Any], valid: Mask | None = None, names: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.values = values
        self.valid = valid
        self.names = names

    def take(self, rows: Any) -> Column:
        """The values of some rows: a mask, indices or a slice."""
        valid = None if self.valid is None else self.valid[rows]
        return Column(self.kind, self.values[rows], valid, self.names)

    def to_list(self) -> list[Any]:
        """The values as Python objects; ``None`` for a missing value."""
        values: list[Any] = self.values.tolist()
        if self.kind == "text":
            values = [self.names[code] for code in values] if self.names else [None] * len(values)
        if self.valid is not None:
            values = [value if has else None for value, has in zip(values, self.valid.tolist(), strict=True)]
        return values


class Table:
    """Named columns of equal length, which do not change.

        >>> from anabranch.result.table import Table
        >>> table = Table.of({"flow": ["a", "b"], "goodput_mbit_s": [9.5, None]})
        >>> table.columns, table.height
        (['flow', 'goodput_mbit_s'], 2)
        >>> table["flow"]
        ['a', 'b']
        >>> [row for row in table]
        [('a', 9.5), ('b', None)]
        >>> table.to_dicts()[0]
        {'flow': 'a', 'goodput_mbit_s': 9.5}

    ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and ``pandas.DataFrame.from_arrow(table)`` accept it directly.
    """

    __slots__ = ("_columns", "height")

    def __init__(self, columns: Mapping[str, Column], height: int = 0) -> None:
        self._columns = dict(columns)
        self.height = len(next(iter(self._columns.values())).values) if self._columns else height

    # --- Making -----------------------------------------------------------------------------

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]]) -> Table:
        """A table of values by column; the numbers of a column become floats if one of them is a float."""
        return cls({name: column_of(values) for name, values in columns.items()})

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> Table:
        """A table of rows, with at least the columns of ``kinds``."""
        names = list(dict.fromkeys([*kinds, *(name for row in rows for name in row)]))
        return cls({name: column_of([row.get(name) for row in rows], kinds.get(name)) for name in names})

    @classmethod
    def of_engine(cls, table: ArrowTable) -> Table:
        """A table of the engine."""
        import numpy as np

        columns = {}
        for name, kind, octets, valid, names in table.columns():
            values = np.frombuffer(octets, dtype="u4" if kind == "text" else kind)
            has = None if valid is None else np.frombuffer(valid, dtype=bool)
            columns[name] = Column(kind, values, has, tuple(names or ()))
        return cls(columns)

    @classmethod
    def of_any(cls, table: Any) -> Table:
        """A table from a table of the engine, a frame of polars, or another :class:`Table`."""
        if isinstance(table, cls):
            return table
        if hasattr(table, "get_columns"):
            return cls({series.name: _of_series(series) for series in table.get_columns()}, table.height)
        return cls.of_engine(table)

    # --- For the user -----------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.height, len(self._columns)

    def __len__(self) -> int:
        return self.height

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> list[Any]:
        return self.column(name).to_list()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*(column.to_list() for column in self._columns.values()), strict=True)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows."""
        return list(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self._columns, row, strict=True)) for row in self]

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists."""
        return {name: column.to_list() for name, column in self._columns.items()}

    def select(self, *names: str) -> Table:
        """Some columns, in this order.

        Raises:
            UserError: There is no such column.
        """
        return Table({name: self.column(name) for name in names}, self.height)

    def to_bytes(self) -> bytes:
        """The table as octets, for :meth:`from_bytes`."""
        import json

        columns = [[_base64(part) if isinstance(part, bytes) else part for part in one] for one in self._plain()]
        return json.dumps(columns).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Table:
        """The table that :meth:`to_bytes` has encoded.

        Raises:
            ValueError: The bytes are no such table.
        """
        import json

        try:
            columns = [(n, k, _octets(v), None if has is None else _octets(has), names)
                       for n, k, v, has, names in json.loads(content)]  # fmt: skip
            return _table_of_plain(columns)
        except (TypeError, RuntimeError) as error:
            raise ValueError(str(error)) from None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface; a list becomes its JSON text."""
        return self._arrow().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _table_of_plain, (self._plain(),)

    def __repr__(self) -> str:
        head = [" ".join(self._columns), *(" ".join(map(str, row)) for _, row in zip(range(8), self, strict=False))]
        more = [f"… {self.height - 8} more rows"] if self.height > 8 else []
        return "\n".join([f"<Table of {self.height} rows>", *head, *more])

    # --- For the reports --------------------------------------------------------------------

    def column(self, name: str) -> Column:
        """A column.

        Raises:
            UserError: There is no such column.
        """
        try:
            return self._columns[name]
        except KeyError:
            from anabranch.errors import UserError, nearest

            raise UserError(f'the table has no column "{name}"', hint=nearest(name, self._columns)) from None

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as floats; NaN for a missing value."""
        import numpy as np

        column = self.column(name)
        values = np.asarray(column.values, dtype=np.float64)
        return values if column.valid is None else np.where(column.valid, values, np.nan)

    def flags(self, name: str) -> Mask:
        """Mask of the rows in which a column of flags is true."""
        column = self.column(name)
        values: Mask = column.values.astype(bool)
        return values if column.valid is None else values & column.valid

    def has(self, name: str) -> Mask:
        """Mask of the rows in which a column has a value."""
        import numpy as np

        valid = self.column(name).valid
        return np.ones(self.height, dtype=bool) if valid is None else valid

    def is_in(self, name: str, *wanted: Any) -> Mask:
        """Mask of the rows in which a column has one of these values."""
        import numpy as np

        column = self.column(name)
        if column.kind != "text":
            return np.isin(column.values, wanted) & self.has(name)
        codes = [code for code, text in enumerate(column.names) if text in wanted]
        return np.isin(column.values, codes) & self.has(name)

    def where(self, mask: Mask) -> Table:
        """The rows for which the mask is true."""
        return self if bool(mask.all()) else self.take(mask)

    def take(self, rows: Any) -> Table:
        """Some rows: indices, a slice or a mask."""
        import numpy as np

        taken = {name: column.take(rows) for name, column in self._columns.items()}
        return Table(taken, 0 if taken else len(np.arange(self.height)[rows]))

    def sort(self, name: str) -> Table:
        """The rows sorted by a column of numbers; the sort is stable."""
        import numpy as np

        values = self.numbers(name)
        return self if not (np.diff(values) < 0).any() else self.take(np.argsort(values, kind="stable"))

    def parts(self, *names: str) -> Iterator[tuple[tuple[Any, ...], Table]]:
        """The rows of each combination of values of these columns, in the order of their first rows."""
        for key, rows in self.groups(*names).items():
            yield key, self if len(rows) == self.height else self.take(rows)

    def groups(self, *names: str) -> dict[tuple[Any, ...], NDArray[np.int64]]:
        """The indices of the rows of each combination of values, in the order of their first rows."""
        import numpy as np

        if not self.height:
            return {}
        code = np.zeros(self.height, dtype=np.int64)
        for name in names:
            column = self.column(name)
            values = column.values if column.valid is None else np.where(column.valid, column.values, 0)
            _, own = np.unique(values, return_inverse=True)
            code = code * (own.max() + 1) + own
            if column.valid is not None:
                code = code * 2 + column.valid
            # Renumber: the product over many columns would overflow.
            _, code = np.unique(code, return_inverse=True)
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        found = sorted(np.split(order, starts[1:]), key=lambda rows: int(rows[0]))
        firsts = self.select(*names).take(np.array([rows[0] for rows in found], dtype=np.int64))
        return dict(zip(firsts, found, strict=True)) if names else {(): order}

    def unique(self, name: str) -> list[Any]:
        """The values of a column in the order of their first rows."""
        return list(dict.fromkeys(self[name]))

    def with_columns(self, more: Mapping[str, Column]) -> Table:
        """The table with these columns added or replaced."""
        return Table({**self._columns, **more}, self.height)

    def _plain(self) -> list[PlainColumn]:
        return [_plain_column(name, column) for name, column in self._columns.items()]

    def _arrow(self) -> ArrowTable:
        from anabranch._engine import ArrowTable

        return ArrowTable(self._plain())


def joined(tables: Sequence[Table]) -> Table:
    """The concatenation of tables; a column is empty for the tables that lack it."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return Table({name: _joined([t.column(name) if name in t else t.height for t in tables]) for name in names})


def _joined(parts: Sequence[Column | int]) -> Column:
    """The concatenation of columns; a number ``n`` is a part with ``n`` empty rows."""
    import numpy as np

    kinds = {part.kind for part in parts if isinstance(part, Column)}
    if len(kinds) > 1:
        lists = [part.to_list() if isinstance(part, Column) else [None] * part for part in parts]
        return column_of([cell for one in lists for cell in one])
    (kind,) = kinds
    columns = [part if isinstance(part, Column) else column_of([None] * part, kind) for part in parts]
    names: dict[str, int] = {}
    values = []
    for column in columns:
        if column.kind != "text":
            values.append(column.values)
            continue
        codes = np.array([names.setdefault(name, len(names)) for name in column.names], dtype=np.uint32)
        values.append(codes[column.values] if len(codes) else column.values)
    valid = None
    if any(column.valid is not None for column in columns):
        valid = np.concatenate([np.ones(len(c.values), dtype=bool) if c.valid is None else c.valid for c in columns])
    return Column(kind, np.concatenate(values), valid, tuple(names))


def column_of(values: Iterable[Any], kind: str | None = None) -> Column:
    """A column of Python's values."""
    import numpy as np

    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        missing = np.isnan(values)
        return Column("f8", values.astype(np.float64), ~missing if missing.any() else None)
    cells = values if isinstance(values, list) else list(values)
    has = np.array([cell is not None for cell in cells], dtype=bool)
    valid = None if has.all() else has
    kind = kind or _kind_of({type(cell) for cell in cells if cell is not None})
    if kind == "text":
        names: dict[str, int] = {}
        codes = [0 if cell is None else names.setdefault(cell, len(names)) for cell in cells]
        return Column("text", np.array(codes, dtype=np.uint32), valid, tuple(names))
    if kind == "object":
        own = np.empty(len(cells), dtype=object)
        own[:] = cells
        return Column("object", own, valid)
    try:
        return Column(kind, np.array([cell or 0 for cell in cells], dtype=kind), valid)
    except OverflowError:
        return Column("f8", np.array([cell or 0 for cell in cells], dtype="f8"), valid)


def _kind_of(types: set[type]) -> str:
    """A kind that can hold values of all these types."""
    if not types or types == {str}:
        return "text"
    if types == {bool}:
        return "?"
    if types <= {int}:
        return "i8"
    return "f8" if types <= {int, float} else "object"


def _of_series(series: pl.Series) -> Column:
    """A column of a frame of polars."""
    import numpy as np

    if series.dtype.is_float():
        has = series.is_not_null().to_numpy()
        return Column("f8", series.cast(float).to_numpy(), None if has.all() else has)
    if series.dtype.is_integer():
        kind = "i8" if series.dtype.is_signed_integer() else "u8"
        has = series.is_not_null().to_numpy()
        return Column(kind, series.fill_null(0).to_numpy().astype(kind), None if has.all() else has)
    values = series.to_list()
    return column_of(values) if values else Column("text", np.zeros(0, dtype=np.uint32))


def _plain_column(name: str, column: Column) -> PlainColumn:
    import numpy as np

    if column.kind == "object":
        import json

        column = column_of([None if cell is None else json.dumps(cell) for cell in column.to_list()], "text")
    valid = None if column.valid is None else column.valid.tobytes()
    names = list(column.names) if column.kind == "text" else None
    return name, column.kind, np.ascontiguousarray(column.values).tobytes(), valid, names


def _base64(octets: bytes) -> str:
    import base64

    return base64.b64encode(octets).decode()


def _octets(text: str) -> bytes:
    import base64

    return base64.b64decode(text, validate=True)


def _table_of_plain(columns: list[PlainColumn]) -> Table:
    from anabranch._engine import ArrowTable

    return Table.of_engine(ArrowTable(columns))


def for_user(table: Any) -> Any:
    """A table as a frame of polars, without a copy; as a :class:`Table` if polars is not installed."""
    if not is_installed("polars"):
        return Table.of_any(table)
    from anabranch.result.frame import NamedFrame

    return NamedFrame(table)
