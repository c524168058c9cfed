"""Reads the parts of the daemon's configuration for a plan: peers, paths with their policies, classes.

The daemon's ``check`` reads the whole file. A plan needs no keys and addresses, so they are not
read. Traffic of a ``[bypass]`` does not enter the tunnel, which is all that a plan simulates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.files.files import MAX_TEXT_BYTES, read_bytes
from anabranch.gateway import classes
from anabranch.text import toml_text

POLICIES = ("active", "overflow", "backup", "metered")
_TABLES = ("gateway", "peer", "path", "class", "bypass", "status")
_PATH_KEYS = ("interface", "source", "policy", "cap", "reset_day", "at_cap", "alarms", "max_rate")
MIN_PATHS = 2


@dataclass(frozen=True)
class ConfiguredPath:
    """A path of the configuration.

    Attributes:
        name: Its name.
        policy: One of :data:`POLICIES`.
        key: The keys of its path in the file, for messages.
    """

    name: str
    policy: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """A configuration.

    Attributes:
        file: Its file.
        text: The content of the file.
        peers: Names of the other ends, in the order of the file.
        paths: Its paths, by name, in the order of the file.
        classes: Its classes, in the order of the file.
    """

    file: str
    text: str
    peers: tuple[str, ...]
    paths: Mapping[str, ConfiguredPath]
    classes: tuple[classes.PlannedClass, ...]

    def error(self, keys: tuple[str, ...], message: str, hint: str | None = None) -> UserError:
        """An error at the position of a key, or of the nearest table around it."""
        return _error(self.file, self.text, keys, message, hint)


def read(file: Path) -> Config:
    """A configuration file.

    Raises:
        UserError: It cannot be read, is not TOML, or has fewer than two paths.
        ScenarioError: A class is wrong.
    """
    name = str(file)
    try:
        text = read_bytes(file, most=MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text", file=name, line=error.object[: error.start].count(b"\n") + 1) from None
    document = toml_text.parse(text, name)
    for table, content in document.items():
        if table not in _TABLES:
            raise _error(name, text, (table,), f"a gateway has no `{table}`", nearest(table, _TABLES))
        if not isinstance(content, dict):
            raise _error(name, text, (table,), f"`{table}` is no table", f"expected [{table}] or [{table}.NAME]")
    paths = {path: _path(name, text, path, entry) for path, entry in document.get("path", {}).items()}
    if len(paths) < MIN_PATHS:
        found = "no path" if not paths else f"one path, `{next(iter(paths))}`"
        hint = "expected two or more [path.NAME]: the configuration of the end with the links"
        raise _error(name, text, ("path",), f"there is {found}", hint)
    return Config(name, text, tuple(document.get("peer", {})), paths, classes.read(text, name))


def _path(file: str, text: str, name: str, entry: Any) -> ConfiguredPath:
    keys = ("path", name)
    if not isinstance(entry, dict):
        raise _error(file, text, keys, f"the path `{name}` is no table", "expected [path.NAME]")
    for key in entry:
        if key not in _PATH_KEYS:
            raise _error(file, text, (*keys, key), f"a path has no `{key}`", nearest(key, _PATH_KEYS))
    policy = entry.get("policy", POLICIES[0])
    if policy not in POLICIES:
        raise _error(file, text, (*keys, "policy"), f"there is no policy {policy!r}", nearest(str(policy), POLICIES))
    return ConfiguredPath(name, policy, keys)


def _error(file: str, text: str, keys: tuple[str, ...], message: str, hint: str | None) -> UserError:
    places = toml_text.locate(text)
    around = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in places), None)
    if around is None:
        return UserError(message, file=file, line=1, column=1, source=toml_text.source_line(text, 1), hint=hint)
    key, value = places[around]
    place = value if around == keys and keys[-1] == "policy" else key
    source = toml_text.source_line(text, place.line)
    return UserError(message, file=file, line=place.line, column=place.column, source=source, hint=hint)
