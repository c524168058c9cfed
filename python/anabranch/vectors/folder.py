"""A folder of vectors: its manifest, and whether this engine still makes the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.vectors.made import COLUMNS, RULE, rows, to_csv, to_qlog
from anabranch.vectors.scenarios import RTT_S, SMSS, STACK, VECTORS

MANIFEST = "MANIFEST.json"
FORMAT = 1
"""Version of the files' form."""


def controls() -> list[str]:
    """The built-in controls, without aliases and without ``bpf``, which is a user's."""
    from anabranch.keys.registry import engine_registry

    return [one["name"] for one in engine_registry() if one["kind"] == "cc" and one["name"] != "bpf"]


def chosen(names: Sequence[str]) -> list[str]:
    """The controls of these names; all without a name.

    Raises:
        UserError: There is no such control.
    """
    known = controls()
    for name in names:
        if name not in known:
            raise UserError(f'there are no vectors of "{name}"', hint=nearest(name, known))
    return [one for one in known if not names or one in names]


def made(names: Sequence[str], *, progress: Callable[[float], None] = lambda _: None) -> Iterator[tuple[str, bytes]]:
    """Every file of these controls: path and content."""
    total = len(names) * len(VECTORS)
    for number, (control, vector) in enumerate((c, v) for c in names for v in VECTORS):
        found = rows(vector, control)
        yield f"{control}/{vector.name}.csv", to_csv(found)
        yield f"{control}/{vector.name}.qlog", to_qlog(found, f"{control}: {vector.name}")
        progress((number + 1) / total)


def digest(content: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(content).hexdigest()


def manifest(digests: dict[str, str]) -> dict[str, Any]:
    """The manifest of files with these digests."""
    from anabranch import _engine

    return {
        "format": FORMAT,
        "anabranch_version": _engine.version(),
        "stack": STACK,
        "smss_bytes": SMSS,
        "rtt_ms": RTT_S * 1000,
        "rule": RULE,
        "columns": list(COLUMNS),
        "scenarios": {vector.name: vector.about for vector in VECTORS},
        "sha256": digests,
    }


def write(folder: Path, names: Sequence[str], *, qlog: bool, progress: Callable[[float], None]) -> int:
    """Write vectors of these controls, the scenarios and the manifest. Returns the number of vectors.

    Args:
        folder: A new or emptied folder.
        names: Controls.
        qlog: Whether to write the qlog files as well; their digests are in the manifest either way.
        progress: Called with the finished share (0‥1).
    """
    digests = {}
    for path, content in made(names, progress=progress):
        digests[path] = digest(content)
        if qlog or not path.endswith(".qlog"):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    (folder / MANIFEST).write_text(json.dumps(manifest(digests), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return len(digests) // 2


def stored(folder: Path) -> dict[str, str]:
    """The digests of a manifest, by path.

    Raises:
        UserError: There is no manifest of vectors.
    """
    file = folder / MANIFEST
    hint = "`anabranch vectors --out DIR` writes one"
    try:
        document = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}", hint=hint) from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise UserError(f"this is no manifest of vectors: {error}", file=str(file), line=line, hint=hint) from None
    digests = document.get("sha256") if isinstance(document, dict) else None
    if not isinstance(digests, dict) or not all(isinstance(value, str) for value in digests.values()):
        raise UserError(f"{file}: this is no manifest of vectors: it has no digests (`sha256`)", hint=hint)
    if document.get("format") != FORMAT:
        raise UserError(f"{file}: vectors of format {document.get('format')!r}; expected {FORMAT}", hint=hint)
    return digests


def differences(folder: Path, names: Sequence[str], *, progress: Callable[[float], None]) -> list[str]:
    """The differences in a folder, one line for each file.

    Args:
        folder: The folder.
        names: Controls; all of the folder if empty.
        progress: Called with the finished share (0‥1).

    Raises:
        UserError: There is no manifest, or it has a control that this version does not have.
    """
    digests = stored(folder)
    within = list(dict.fromkeys(path.partition("/")[0] for path in digests))
    checked = chosen(names or within)
    found = []
    for path, content in made(checked, progress=progress):
        known = digests.get(path)
        if known is None:
            found.append(f"{path}: not in the manifest")
        elif known != digest(content):
            found.append(f"{path}: this version makes another one")
        file = folder / path
        if known is None or not (path.endswith(".csv") or file.exists()):
            continue
        try:
            is_same = digest(file.read_bytes()) == known
        except OSError as error:
            found.append(f"{path}: {error.strerror or error}")
        else:
            if not is_same:
                found.append(f"{path}: the file is not that of the manifest")
    return found
