"""The documents that Python declares: the TypedDicts of modules, whose docstrings have the meanings of the keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reference.declared import UNITS
from reference.markdown import code, table

HEAD = ("key", "unit", "meaning")
_WORDS = {"str": "text", "bool": "yes or no", "int": "count", "float": "number"}
_TEXTS = frozenset({"By", "Cause", "DirectionName", "EndName", "Key", "Limit", "Verdict"})
"""Types with a few texts as their values."""
_ATTRIBUTE = re.compile(r"^(\w+): (.*(?:\n    .*)*)", re.MULTILINE)


class Key(NamedTuple):
    """A key of a document."""

    name: str
    kind: str
    meaning: str


class Declaration(NamedTuple):
    """A document: its title, introduction, root and module."""

    title: str
    about: str
    root: str
    module: str


def section(root: Path, one: Declaration) -> Iterator[str]:
    """The tables of a document.

    Raises:
        SystemExit: A key has no meaning.
    """
    dicts = dict(_dicts(root / one.module))
    yield f"## {one.title}\n"
    yield one.about
    paths: dict[str, list[str]] = {}
    _walk(dicts, one.root, "", paths)
    for name, (first, *further) in paths.items():
        yield f"### {first or 'The document'}\n"
        if further:
            yield f"Also of {', '.join(code(path) for path in further)}.\n"
        yield table(HEAD, [(code(key.name), _unit(key), key.meaning) for key in dicts[name]])


def _walk(dicts: dict[str, list[Key]], name: str, path: str, found: dict[str, list[str]]) -> None:
    is_known = name in found
    found.setdefault(name, []).append(path)
    if is_known:
        return
    for key in dicts[name]:
        kind, suffix = _inner(key.kind)
        if kind in dicts:
            _walk(dicts, kind, f"{path}.{key.name}{suffix}".removeprefix("."), found)


def _dicts(module: Path) -> Iterator[tuple[str, list[Key]]]:
    for node in ast.parse(module.read_text("utf-8")).body:
        if not isinstance(node, ast.ClassDef) or [ast.unparse(base) for base in node.bases] != ["TypedDict"]:
            continue
        meanings = _meanings(ast.get_docstring(node) or "")
        keys = []
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                name = field.target.id
                if name not in meanings:
                    raise SystemExit(f"{module.name}: {node.name}.{name} has no meaning; expected it in Attributes")
                kind = ast.unparse(field.annotation)
                required = re.fullmatch(r"NotRequired\[(.*)\]", kind)
                keys.append(Key(name, required[1] if required else kind, meanings[name].replace("``", "`")))
        yield node.name, keys


def _meanings(docstring: str) -> dict[str, str]:
    _, _, attributes = docstring.partition("Attributes:\n")
    lines = [line.removeprefix("    ") for line in attributes.splitlines()]
    return {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall("\n".join(lines))}


def _inner(kind: str) -> tuple[str, str]:
    """The type within a list, table or option, and the end of its path."""
    if (one := re.fullmatch(r"(.*) \| None", kind)) is not None:
        return _inner(one[1])
    if (one := re.fullmatch(r"(?:list|tuple)\[(.*?)(?:, .*)?\]", kind)) is not None:
        found, suffix = _inner(one[1])
        return found, f"[]{suffix}"
    if (one := re.fullmatch(r"dict\[[^,]*, (.*)\]", kind)) is not None:
        found, suffix = _inner(one[1])
        return found, f".NAME{suffix}"
    return kind, ""


def _unit(key: Key) -> str:
    if (one := re.fullmatch(r"(.*) \| None", key.kind)) is not None:
        return f"{_unit(key._replace(kind=one[1]))} or null"
    kind, suffix = _inner(key.kind)
    if suffix:
        return "list" if suffix.startswith("[]") else "table"
    if kind in ("int", "float"):
        return next((unit for ending, unit in UNITS.items() if key.name.endswith(ending)), _WORDS[kind])
    return _WORDS.get(kind, "text" if kind in _TEXTS else "table")
