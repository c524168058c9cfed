"""``anabranch explain`` for the names of results: figures of a summary, columns of tables, keys of plans."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from anabranch.cli import result_names
from anabranch.cli.blocks import write
from anabranch.cli.common import console, print_json, styled
from anabranch.result import measure_names
from anabranch.text.lines import wrapped

_MOST_SHORT = 4
_NEAR = 0.75
"""Similarity above which one word is a misspelling of another."""


def named(written: str) -> list[str]:
    """The names of results, or of tables, for a written name; empty if there are none."""
    word = measure_names.plain(written)
    return result_names.named(word) or ([word] if word in result_names.tables() else [])


def nearest(written: str, others: Iterable[str]) -> str | None:
    """A hint that names the nearest result; ``None`` if none is near, or one of ``others`` is nearer."""
    every = list(result_names.places())
    words = {*every, *map(measure_names.quantity, every), *measure_names.WORDS, *result_names.tables()}
    close = difflib.get_close_matches(measure_names.plain(written), sorted(words), 1, _NEAR)
    if not close or difflib.get_close_matches(written, [*close, *others], 1, _NEAR) != close:
        return None
    return f'did you mean "{close[0]}"?'


def pointer(written: str, names: Sequence[str]) -> str:
    """Reference to the results of a name that also names the explained item."""
    told = " or ".join(f"`{name}`" for name in names[:_MOST_SHORT])
    return f'In results, "{written}" is {told}: anabranch explain {names[0]}'


def explain(written: str, names: Sequence[str], *, json: bool) -> None:
    """Print the meaning of each name in all its places."""
    if json:
        print_json(to_json(names[0]) if len(names) == 1 else [to_json(name) for name in names])
        return
    out = console()
    if list(names) != [written]:
        told = " or ".join(f"`{name}`" for name in names)
        write(out, [*wrapped(f'"{written}" is {told} here.', ""), ""])
    for number, name in enumerate(names):
        if number:
            out.print()
        out.print(styled(name), "(result)")
        for place in result_names.places().get(name, ()):
            head = f"  {place.where}" + (f": {place.unit}" if place.unit else "")
            more = "" if place.engine == result_names.BOTH else f" ({_ENGINES[place.engine]})"
            write(out, ["", *wrapped(head, "    "), *wrapped(f"      {_text(place.meaning)}{more}", "      ")])
        if name in result_names.tables():
            columns = ", ".join(result_names.columns(name))
            about = _text(result_names.tables()[name])
            write(out, ["", "  a table of a run", *wrapped(f"      {about}", "      ")])
            write(out, wrapped(f"      Columns: {columns}", "      ") if columns else [])
        if short := result_names.short_names(name):
            told = ", ".join(short[:_MOST_SHORT])
            write(
                out,
                ["", *wrapped(f"  Also: {told}, wherever a measure is named (compare --measure, plot(y=…))", "    ")],
            )


_ENGINES = {result_names.LIVE: "live runs only", result_names.SIMULATOR: "simulator only"}


def _text(markdown: str) -> str:
    """A text without the marks of Markdown."""
    return re.sub(r"`([^`]*)`", r"\1", " ".join(markdown.split()))


def to_json(name: str) -> dict[str, object]:
    """A name as ``explain --json`` has it."""
    places = [
        {"place": one.where, "unit": one.unit, "meaning": one.meaning, "engine": one.engine}
        for one in result_names.places().get(name, ())
    ]
    if name in result_names.tables():
        places.append({"place": "a table", "unit": "", "meaning": result_names.tables()[name], "engine": "both"})
    return {"kind": "result", "name": name, "places": places, "short_names": result_names.short_names(name)}
