"""Escaping of names, titles and file names, with one function for each kind of output.

The author of a scenario chose its names. None of them may be interpreted as mark-up, a formula, a
control sequence or a part of a page's structure.
"""

from __future__ import annotations

import html as html_module
import json as json_module
import re
from typing import Any

MAX_LABEL = 60
"""Characters of a name in a figure; a longer one would leave no room for the curves."""

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: control characters of terminals
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line ends, and marks that reorder the surrounding text
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e007f]"  # surrogates, invisible marks
)
_LINES = re.compile(r"[\n\t]")
_MARKDOWN = re.compile(r"([\\`*\[\]<|~$&]|^[#>+-]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
"""Beginnings of emphasis, code, links, tags, entities, cells, headings or lists; not the underscore inside a name."""
_UNPRINTABLE_JSON = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """``text`` with every control character replaced by a visible one of the same width."""
    return _CONTROL.sub(_visible, text)


def terminal(text: str) -> str:
    """Text for a terminal. Lines and tabs stay; nothing moves the cursor or changes a colour."""
    return "".join(part if _LINES.fullmatch(part) else plain(part) for part in re.split(r"([\n\t])", text))


def html(value: object) -> str:
    """A value as text, or as an attribute in quotation marks, of a page."""
    return html_module.escape(terminal(str(value)), quote=True)


def script(value: Any) -> str:
    """A value as JSON inside ``<script>``, in which nothing begins a tag, a comment or a line."""
    text = json_module.dumps(value, ensure_ascii=False, allow_nan=False)
    return printable_json(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def printable_json(document: str) -> str:
    """The same JSON document with terminal control characters escaped; they occur only inside its texts."""
    if document.isascii() and "\x7f" not in document:
        return document
    # JSON writes characters beyond U+FFFF as surrogate pairs.
    return _UNPRINTABLE_JSON.sub(lambda found: json_module.dumps(found[0])[1:-1], document)


def markdown(value: object) -> str:
    """A value as text of one line, also inside a table."""
    return _MARKDOWN.sub(r"\\\1", plain(str(value)))


def python(value: object, most: int = MAX_LABEL) -> str:
    """A value as a Python literal, on one line of at most ``most`` characters."""
    text = plain(repr(value))
    return text if len(text) <= most else text[: most - 1] + "…"


def figure(text: str, most: int = MAX_LABEL) -> str:
    """A name or title as text of a figure: no formula, one line, of at most ``most`` characters."""
    shown = plain(text)
    if len(shown) > most:
        shown = shown[: most - 1] + "…"
    # An escaped dollar sign begins no formula; without a formula matplotlib removes the backslash.
    return shown.replace("$", r"\$")


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
