"""The studio's page, and links to its states."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import UserError

PAGE = Path(__file__).resolve().parent / "studio.html"
"""Built by tools/build_studio; a wheel holds it."""
VERSION = 1
"""The version of the links (studio/src/model/share.ts)."""
_CLOSED = "default-src 'none'"


def page() -> str:
    """The page as it is opened from a folder: it can reach nothing.

    Raises:
        UserError: It was not built.
    """
    try:
        return PAGE.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("this installation has no studio", hint="in a checkout, make studio builds it") from None


def fragment(scenario: str) -> str:
    """The fragment of a link that opens a scenario's text."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(json.dumps({"text": scenario}).encode()) + packer.flush()
    return f"{VERSION}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def with_server(page: str, offered: Mapping[str, Any]) -> str:
    """The page with the offers of its own server, which it may reach, and nothing else."""
    served = json.dumps(offered).replace("<", "\\u003c")
    opened = page.replace(_CLOSED, f"{_CLOSED}; connect-src 'self'", 1)
    return opened.replace("<noscript>", f'<script type="application/json" id="served">{served}</script>\n<noscript>', 1)
