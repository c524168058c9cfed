"""Places of mistakes in the file of a queue, which the engine reads as a part of a scenario."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.errors import UserError

if TYPE_CHECKING:
    from anabranch._engine import ScenarioError

_KEY_BEFORE = re.compile(r'([\w-]+)["\']?\s*=\s*$')


def mistake(
    path: Path, text: str, message: str, key: str, value: str | None = None, hint: str | None = None
) -> UserError:
    """A mistake at a key of the file, or at its value; without a place if the file does not have it as one line."""
    pattern = rf'(?<![\w-])(?P<key>{re.escape(key)})["\']?\s*=\s*'
    if value is not None:
        pattern += rf'(?P<value>["\']?{re.escape(value)})'
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(pattern, line.partition("#")[0])
        if found is not None:
            column = found.start("key" if value is None else "value") + 1
            return UserError(message, file=str(path), line=number, column=column, source=line, hint=hint)
    return UserError(message, file=str(path), hint=hint)


def refusal(path: Path, text: str, error: ScenarioError) -> UserError:
    """The engine's first error for a scenario with the queue, at its place in the file."""
    block = str(error).partition("\n\n")[0].splitlines()
    hint = "\n  ".join(line.strip().removeprefix("= ") for line in block if line.strip().startswith("= ")) or None
    source = next((line.partition(" | ")[2] for line in block if " | " in line and "^" not in line), "")
    marked = next((len(line) - len(line.rstrip("^")) for line in block if line.endswith("^")), 0)
    start = (error.column or 1) - 1
    token = source[start : start + marked].strip("\"'")
    key = _KEY_BEFORE.search(source[:start])
    if not token:
        return UserError(error.message, file=str(path), hint=hint)
    if key is None:
        return mistake(path, text, error.message, token, hint=hint)
    return mistake(path, text, error.message, key[1], token, hint=hint)
