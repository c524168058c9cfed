"""Options that a command does not have, and their intended meaning: mostly a key of the scenario for ``--set``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

WORDS = {"metric": "measure", "metrics": "measure", "measures": "measure", "output": "out", "outdir": "out",
         "seeds": "repeat", "repeats": "repeat", "runs": "repeat", "threads": "jobs", "engines": "engine"}  # fmt: skip
"""Options by other names."""
_NAMED = {"Flow": "flow.NAME", "Link": "link.NAME", "Overrides": "flow.NAME.transport"}
"""Tables of the format, and the path to each."""


class Meant(NamedTuple):
    """A better message."""

    message: str
    hint: str


def meant_option(error: Any, words: Sequence[str]) -> Meant | None:
    """The intended meaning of an unknown option or an extra word; ``None`` if there is no suggestion.

    Args:
        error: The error of the parser.
        words: The command line.
    """
    context = getattr(error, "ctx", None)
    if context is None:
        return None
    options = [name for one in context.command.params for name in one.opts if name.startswith("--")]
    option = getattr(error, "option_name", None)
    if option is not None:
        hint = _hint(str(option).lstrip("-").replace("-", "_"), options)
        close = sorted(error.possibilities or ())
        told = f" Did you mean {close[0]}?" if len(close) == 1 else f" (Possible options: {', '.join(close)})"
        message = f"no such option: {option}" + (told if close and not hint else "")
        return Meant(message, hint or f"{context.command_path} --help lists its arguments and options")
    if "--set" in options:
        # `--set flow.main.cc reno`
        for i, word in enumerate(words[:-2]):
            path, value = words[i + 1 : i + 3]
            if word == "--set" and "=" not in path and not value.startswith("-"):
                return Meant(f"--set {path!r}: PATH=VALUE was expected", f"--set {path}={value}")
    return None


def _hint(name: str, options: Sequence[str]) -> str | None:
    if f"--{WORDS.get(name)}" in options:
        return f"did you mean --{WORDS[name]}?"
    if "--set" not in options:
        return None
    from anabranch.cli import keys
    from anabranch.text.synonyms import meant

    known = list(keys.keys(keys.schema()))
    for wanted in (name, (meant(name) or "").rpartition(".")[2]):
        if any(key.name == wanted and key.table == "" for key in known):
            return f"did you mean --set {wanted}=VALUE?"
        for table, path in _NAMED.items():
            if any(key.name == wanted and key.table == table for key in known):
                return f"did you mean --set {path}.{wanted}=VALUE?"
    return None
