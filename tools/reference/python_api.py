"""The Python page: the package's exports, from signatures and docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anabranch

from reference.markdown import NOTICE, code, table

FURTHER = """\
[First steps](../notebooks/first-steps.ipynb) is a notebook that was run. [Results](results.md) has every column and key
of what a run gives.
"""


def page(module: ModuleType = anabranch) -> str:
    """Return the page."""
    out = [NOTICE, "# Python\n", f"{_markdown(module)}\n", FURTHER]
    for name in module.__all__:
        if not name.startswith("_"):
            out += _export(name, getattr(module, name))
    return "\n".join(out)


def _export(name: str, thing: Any) -> Iterator[str]:
    yield f"## {name}\n"
    if isinstance(thing, str):
        # A type alias.
        yield f"```python\n{name} = {thing}\n```\n\n{_inline(_said_after(name))}\n"
        return
    if isinstance(thing, ModuleType) or not callable(thing):
        yield f"{_markdown(thing)}\n"
        if isinstance(thing, ModuleType):
            yield _modules(thing)
        return
    yield _signature(name, thing)
    if inspect.isclass(thing):
        for member, function in _members(thing):
            yield f"### {name}.{member}\n"
            yield from _member(f"{name}.{member}", function)


def _said_after(name: str) -> str:
    """Return the docstring after the assignment of a public name in its module."""
    body = ast.parse(inspect.getsource(importlib.import_module(anabranch._HOMES[name]))).body
    for statement, following in itertools.pairwise(body):
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == name and isinstance(following, ast.Expr):
            return str(ast.literal_eval(following.value))
    return ""


def _modules(package: ModuleType) -> str:
    """Return a table of a package's modules and their functions."""
    rows = []
    for name in package.__all__:
        module = importlib.import_module(f"{package.__name__}.{name}")
        own = [one for one, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
        rows.append((code(name), ", ".join(code(one) for one in own)))
    return table(("module", "functions"), rows)


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
        yield f"{_markdown(member)}\n"
        return
    yield _signature(path, member.__func__ if isinstance(member, classmethod | staticmethod) else member)


def _signature(path: str, thing: Any) -> str:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = "(…)"
    signature = re.sub(r"\((self|cls)(: S)?(, )?", "(", signature, count=1)
    # A method inherited from a base class returns the subclass.
    signature = re.sub(r"-> S$", f"-> {path.partition('.')[0]}", signature)
    # Defaults that are objects show an address, which differs from run to run.
    signature = re.sub(r"<([^<>]*?) at 0x[0-9a-f]+>", r"<\1>", signature)
    return f"```python\n{path}{_unquoted(signature)}\n```\n\n{_markdown(thing)}\n"


def _markdown(thing: Any) -> str:
    """Return a docstring as Markdown: examples as code, arguments as lists."""
    lines = [_inline(line) for line in (inspect.getdoc(thing) or "").splitlines()]
    out: list[str] = []
    section, in_example = False, False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text = line.strip()
        if text.startswith(">>>") and not in_example:
            in_example = True
            out.append("```pycon")
        if in_example and not text:
            in_example = following.strip().startswith(">>>")
            out.append("" if in_example else "```\n")
        elif in_example:
            out.append(line.removeprefix("    "))
        elif text in ("Args:", "Raises:", "Attributes:", "Returns:"):
            section = True
            out.append(f"{text}\n")
        elif section and re.match(r" {4}\S", line):
            name, colon, rest = text.partition(": ")
            out.append(f"- `{name}`: {rest}" if colon else f"- {text}")
        else:
            section = section and bool(text)
            out.append(f"  {text}" if section else line)
    return "\n".join([*out, "```"] if in_example else out)


def _inline(line: str) -> str:
    """Return a line with its roles as code."""
    if line.strip().startswith((">>>", "...")):
        return line
    return re.sub(r":\w+:`([^`<]*?)(?: <[^>]*>)?`", r"`\1`", line).replace("``", "`")


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _unquoted(signature: str) -> str:
    """Remove the quotes of annotations that are strings already (deferred ones)."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
