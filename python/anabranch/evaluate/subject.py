"""The subject of an evaluation: a congestion control or a queue, in the form that scenarios have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError, nearest
from anabranch.evaluate.includes import hash_of_program
from anabranch.evaluate.queue_file import mistake
from anabranch.keys.registry import aliases, engine_registry

if TYPE_CHECKING:
    from anabranch.control import CongestionControl

CONTROL = "control"
QUEUE = "queue"
BPF_SUFFIX = ".bpf.c"

_ECN: Mapping[str, str] = {"prague": "l4s", "dctcp": "dctcp"}
"""Controls that need a kind of ECN; the others run without it unless an item is about ECN."""


@dataclass(frozen=True)
class Subject:
    """A congestion control or a queue.

    Attributes:
        name: Its name in reports.
        role: ``"control"`` or ``"queue"``.
        value: Its form in scenarios: a name or a table.
        ecn: The kind of ECN that a control needs, ``None`` without one.
        controls: The class of a control in Python, else empty.
        source: The file that defines it, else ``None``.
        mark: A hash of ``source``, so that stored runs of another version are not reused.
        file: The file of a queue's table and its text, else ``None``.
    """

    name: str
    role: str
    value: Any
    ecn: str | None = None
    controls: tuple[type[CongestionControl], ...] = field(default=(), compare=False)
    source: str | None = None
    mark: str = ""
    file: tuple[Path, str] | None = field(default=None, compare=False)

    @property
    def is_isolated(self) -> bool:
        """Whether its code is the user's, which may crash or never end: its runs have processes of their own."""
        return self.source is not None


def builtin(name: str) -> Subject:
    """A control that ships, by its name.

    Raises:
        UserError: There is none.
    """
    names = names_of("cc")
    if name not in names or name == "bpf":
        raise UserError(f'there is no congestion control "{name}"', hint=nearest(name, names - {"bpf"}))
    return Subject(name, CONTROL, name, _ECN.get(name))


@cache
def names_of(kind: str) -> frozenset[str]:
    """The names of a kind of component, with their aliases."""
    items = [item for item in engine_registry() if item["kind"] == kind]
    return frozenset(name for item in items for name in (item["name"], *aliases(item)))


def find(text: str) -> Subject:
    """The subject that an argument names.

    A congestion control: its name, ``module:Class``, or ``FILE.bpf.c``. A queue: its kind, or a TOML file with a table.

    Raises:
        UserError: It is none of these.
    """
    if text.endswith(BPF_SUFFIX):
        return _bpf(text)
    if text.endswith(".toml"):
        return _table(Path(text))
    if ":" in text:
        return _python(text)
    if text in names_of("cc") and text != "bpf":
        return builtin(text)
    if text in names_of("queue"):
        return Subject(text, QUEUE, {"kind": text})
    names = (names_of("cc") | names_of("queue")) - {"bpf"}
    raise UserError(f'there is no congestion control or queue "{text}"', hint=nearest(text, names))


def _bpf(text: str) -> Subject:
    path = Path(text)
    _content(path, "an eBPF program")
    name = path.name.removesuffix(BPF_SUFFIX)
    return Subject(
        name,
        CONTROL,
        {"kind": "bpf", "file": str(path.resolve())},
        source=text,
        mark=hash_of_program(path),
    )


def _content(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}", hint=f"the name of {what} was expected") from None


def _table(path: Path) -> Subject:
    """A queue from a TOML file: its table, alone or under ``queue``."""
    from anabranch.scenario import read_text
    from anabranch.text import toml_text

    text = read_text(path)
    table = toml_text.parse(text, str(path))
    chosen = table.get("queue", table)
    if not isinstance(chosen, dict) or "kind" not in chosen:
        raise UserError(
            f"{path} has no queue", hint='a table with `kind = "codel"` was expected, alone or under `queue`'
        )
    kind = str(chosen["kind"])
    if kind not in names_of("queue"):
        hint = nearest(kind, names_of("queue"))
        raise mistake(path, text, f'there is no queue "{kind}"', "kind", kind, hint=hint)
    return Subject(path.stem, QUEUE, dict(chosen), file=(path, text))


def _python(text: str) -> Subject:
    """A control in Python, as ``module:Class`` or ``file.py:Class``."""
    control = load_class(text)
    return Subject(
        control.name, CONTROL, control.name, getattr(control, "ecn", None), (control,), text, _hash_of(control)
    )


def load_class(text: str) -> type[CongestionControl]:
    """The class that ``module:Class`` names.

    Raises:
        UserError: There is no such module or class, or it is no congestion control.
    """
    import importlib
    import sys

    from anabranch.keys.control_names import check_names

    module, _, name = text.rpartition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    path = Path(module)
    if module.endswith(".py"):
        if not path.is_file():
            raise UserError(f"{module}: no such file", hint="module:Class or FILE.py:Class was expected")
        sys.path.insert(0, str(path.resolve().parent))
        module = path.stem
    try:
        loaded = importlib.import_module(module)
    except Exception as error:
        raise UserError(f"{text}: the module cannot be imported: {type(error).__name__}: {error}") from None
    control = getattr(loaded, name, None)
    if control is None:
        raise UserError(f"{text}: {module} has no {name}", hint=nearest(name, [n for n in vars(loaded) if n[0] != "_"]))
    check_names([control])
    found: type[CongestionControl] = control
    return found


def _hash_of(control: type) -> str:
    """Of the control's module, of its base classes' modules, and of all that these import."""
    import sys

    names = {one.__module__ for one in control.__mro__}
    found: dict[str, bytes] = {}
    while names:
        name = names.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None or name in found or _is_installed(name, Path(file)):
            continue
        found[name] = Path(file).read_bytes() if Path(file).is_file() else b""
        names |= _imports(name, found[name])
    source = b"".join(name.encode() + found[name] for name in sorted(found)) or repr(control).encode()
    return hashlib.sha256(source).hexdigest()


def _imports(name: str, source: bytes) -> set[str]:
    """The modules that a module's source imports."""
    import ast

    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(name.split(".")[: -node.level]) if node.level else ""
            module = ".".join(part for part in (above, node.module or "") if part)
            found |= {module, *(f"{module}.{one.name}" for one in node.names)}
    return found


def _is_installed(name: str, file: Path) -> bool:
    """Whether a module is of Python or of an installed package: these do not change between two calls."""
    import sysconfig

    if name.partition(".")[0] == "anabranch":
        return True
    roots = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return any(file.is_relative_to(root) for root in roots)


def to_json(subject: Subject) -> dict[str, object]:
    """Part of the document of an evaluation."""
    value = subject.value
    if isinstance(value, dict) and "file" in value:
        value = {**value, "file": Path(value["file"]).name}
    return {
        "name": subject.name,
        "role": subject.role,
        "value": json.loads(json.dumps(value)),
        "source": subject.source,
    }
