"""The document of a diagnosis as the engine writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from anabranch import _engine
from anabranch.errors import UserError
from anabranch.text import shown


def document(
    path: str | Path,
    *,
    any_expansion: bool = False,
    progress: Callable[[float], None] | None = None,
    is_indented: bool = False,
) -> str:
    """The JSON document of a capture or a qlog: in one line, or as ``anabranch diagnose --json`` prints it.

    Python takes longer to read and to write the document of many connections than the engine takes for their packets.

    Raises:
        UserError: It is neither a capture nor a qlog, or cannot be read.
    """
    try:
        return _engine.diagnose(str(path), str(path), any_expansion, progress, is_indented)
    except _engine.CaptureError as error:
        raise UserError(str(error), file=shown.plain(str(path))) from None
