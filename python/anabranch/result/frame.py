"""Polars frames that suggest the nearest name for a missing column."""

from __future__ import annotations

from typing import Any

import polars as pl

from anabranch.result.entries import UnknownNameError
from anabranch.result.measure_names import meant, near


class UnknownColumnError(UnknownNameError, pl.exceptions.ColumnNotFoundError):
    """A table has no such column; the hint is the nearest one."""


class NamedFrame(pl.DataFrame):
    """A frame of results. Frames derived from it (selected, filtered) are plain Polars frames."""

    def __getitem__(self, key: Any) -> Any:
        """A column, or rows, as of Polars."""
        if isinstance(key, str):
            return self.get_column(key)
        return super().__getitem__(key)

    def get_column(self, name: str, **options: Any) -> Any:
        """A column, as of Polars."""
        if name not in self.columns and not options:
            found = meant(name, self.columns)
            hint = f'did you mean "{found[0]}"?' if len(found) == 1 else near(name, self.columns)
            raise UnknownColumnError(f'the table has no column "{name}"', hint=hint)
        return super().get_column(name, **options)

    def select(self, *expressions: Any, **named: Any) -> pl.DataFrame:
        """Columns, as of Polars."""
        for one in expressions:
            # `select("*")` and `select("^a.*$")` are patterns.
            for name in [one] if isinstance(one, str) else one if isinstance(one, (list, tuple)) else ():
                if isinstance(name, str) and name not in self.columns and name[:1] not in "*^":
                    self.get_column(name)
        return super().select(*expressions, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        # The reader may have another version of Anabranch.
        return pl.DataFrame, (self.to_dict(as_series=True),)
