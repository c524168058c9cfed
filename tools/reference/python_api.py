"""The Python page: what the package exports, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anabranch

from reference.markdown import NOTICE


def page(module: ModuleType = anabranch) -> str:
    """Return the page."""
    out = [NOTICE, "# Python\n", f"{inspect.getdoc(module) or ''}\n"]
    for name in module.__all__:
        if not name.startswith("_"):
            out += _export(name, getattr(module, name))
    return "\n".join(out)


def _export(name: str, thing: Any) -> Iterator[str]:
    yield f"## {name}\n"
    if isinstance(thing, ModuleType) or not callable(thing):
        yield f"{inspect.getdoc(thing) or ''}\n"
        return
    yield _signature(name, thing)
    if inspect.isclass(thing):
        for member, function in _members(thing):
            yield f"### {name}.{member}\n"
            yield from _member(f"{name}.{member}", function)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    members = {
        name: member
        for base in reversed(cls.__mro__)
        if base.__module__ != "builtins"
        for name, member in vars(base).items()
    }
    for name, member in members.items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | classmethod | staticmethod) or inspect.isroutine(member):
            yield name, member


def _member(path: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        result = inspect.signature(member.fget).return_annotation if member.fget else ""
        yield f"```python\n{path}: {_annotation(result)}\n```\n"
        yield f"{inspect.getdoc(member) or ''}\n"
        return
    yield _signature(path, member.__func__ if isinstance(member, classmethod | staticmethod) else member)


def _signature(path: str, thing: Any) -> str:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = "(…)"
    signature = re.sub(r"\((self|cls)(: S)?(, )?", "(", signature, count=1)
    # What a method of a base class returns of its own type.
    signature = re.sub(r"-> S$", f"-> {path.partition('.')[0]}", signature)
    # Defaults that are objects show an address, which differs from run to run.
    signature = re.sub(r"<([^<>]*?) at 0x[0-9a-f]+>", r"<\1>", signature)
    return f"```python\n{path}{_unquoted(signature)}\n```\n\n{inspect.getdoc(thing) or ''}\n"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _unquoted(signature: str) -> str:
    """Annotations that are strings already (deferred ones) lose their quotes."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
