"""The fields of JSON documents, from the sources that declare them.

serde writes a Rust field under its own name, so that a serialized struct or enum is the declaration of a part of a
document. What Python adds to it is declared as TypedDicts.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from anabranch import _engine

_STRUCT = re.compile(r"((?:///[^\n]*\n)*)(?:#\[(?:[^\]]|\n)*?\]\n)*pub struct (\w+) \{\n(.*?)\n\}", re.DOTALL)
_COUNTERS = re.compile(r"\n    ((?:///[^\n]*\n    )*)(\w+) \{\n((?:\s+(?:///[^\n]*|\w+,)\n)+)    \}")
_FIELD = re.compile(r"((?:\s*///[^\n]*\n)*)((?:\s*#\[[^\n]*\n)*)\s*(?:pub )?(\w+)(?:: ([^\n]+))?,(?:\n|$)")
_SERDE = re.compile(r"#\[serde\(([^\n]*)\)\]")
READ = frozenset({"default", "flatten", "skip_serializing_if"})
"""Attributes of serde that a field of a document may have."""
_ENUM = re.compile(r'#\[serde\(rename_all = "(kebab|snake)-?_?case"\)\]\npub enum (\w+) \{\n(.*?)\n\}', re.DOTALL)
_VARIANT = re.compile(r"^    (\w+),", re.MULTILINE)
_PYTHON = {"int": "u64", "float": "f64", "str": "String", "bool": "bool"}


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    kind: str
    meaning: str
    is_flat: bool = False


class Struct(NamedTuple):
    """A struct: a part of a document."""

    meaning: str
    fields: list[Field]


class Document(NamedTuple):
    """A document, and where its parts are declared.

    Attributes:
        root: The struct of the whole document.
        places: Rust files and folders. Of two structs with one name, the last is the document's.
        added: The module with the TypedDicts of Python.
        registered: Enums from registries, and their names there.
        unions: Types with the values of several enums.
    """

    root: str
    places: tuple[str, ...]
    added: str = ""
    registered: Mapping[str, str] = {}
    unions: Mapping[str, tuple[str, ...]] = {}


ADDED = "Added"
"""The TypedDict of the keys that Python adds to a Rust struct, whose name follows: ``AddedConnection``."""

DIAGNOSIS = Document(
    "Report",
    (
        "crates/diagnose/src/connection/announcements.rs",
        "crates/diagnose/src/connection/handshake.rs",
        "crates/diagnose/src/control/mod.rs",
        "crates/diagnose/src/entries.rs",
        "crates/diagnose/src/figures.rs",
        "crates/diagnose/src/path",
        "crates/diagnose/src/quic/mod.rs",
        "crates/diagnose/src/quic/packets.rs",
        "crates/diagnose/src/retransmission",
        "crates/diagnose/src/segment.rs",
        "crates/diagnose/src/report.rs",
    ),
    "python/anabranch/diagnosis/simulated.py",
    {"Limit": "limits", "Kind": "findings"},
    {"Cause": ("Limit", "Kind")},
)
STATUS = Document("Report", ("crates/gatewayd/src/status.rs",))


class Declared(NamedTuple):
    """The parts of a document."""

    structs: dict[str, Struct]
    enums: dict[str, tuple[str, ...]]
    """Values of enums by name."""
    unions: Mapping[str, tuple[str, ...]]
    """Types with the values of several enums."""
    added: frozenset[str]
    """Structs that Python declares."""
    extended: dict[str, list[Field]]
    """Fields that Python adds to structs of Rust."""

    def unfolded(self, name: str) -> list[Field]:
        """The fields of a struct, with the fields of flattened structs in their place."""
        fields = []
        for field in self.structs[name].fields:
            fields += self.unfolded(inner(field.kind)[0]) if field.is_flat else [field]
        return fields + self.extended.get(name, [])

    def paths(self, root: str) -> dict[str, list[str]]:
        """Every struct of the document, and the paths to it."""
        found: dict[str, list[str]] = {}
        self._walk(root, "", found)
        return found

    def _walk(self, name: str, path: str, found: dict[str, list[str]]) -> None:
        is_known = name in found
        found.setdefault(name, []).append(path)
        if is_known:
            return
        for field in self.unfolded(name):
            kind, suffix = inner(field.kind)
            if kind in self.structs:
                self._walk(kind, f"{path}.{field.name}{suffix}".removeprefix("."), found)


def declared(root: Path, document: Document) -> Declared:
    """Read the declarations of a document.

    Raises:
        SystemExit: A field has an attribute of serde that is not read.
    """
    files = [file for place in document.places for file in _files(root / place)]
    text = "\n".join(file.read_text("utf-8") for file in files)
    structs = {
        name: Struct(_text(about), _fields(name, body))
        for pattern in (_STRUCT, _COUNTERS)
        for about, name, body in pattern.findall(text)
    }
    enums = {}
    for case, name, body in _ENUM.findall(text):
        joint = {"kebab": "-", "snake": "_"}[case]
        enums[name] = tuple(re.sub(r"(?<!^)(?=[A-Z])", joint, one).lower() for one in _VARIANT.findall(body))
    terms = json.loads(_engine.diagnose_terms())
    enums |= {name: tuple(one["name"] for one in terms[key]) for name, key in document.registered.items()}
    added = dict(_of_python(root / document.added)) if document.added else {}
    structs |= {name: struct for name, struct in added.items() if not name.startswith(ADDED)}
    extended = {name.removeprefix(ADDED): one.fields for name, one in added.items() if name.startswith(ADDED)}
    return Declared(structs, enums, document.unions, frozenset(added), extended)


def inner(kind: str) -> tuple[str, str]:
    """The type within a list, table or option, and the end of its path."""
    if (one := re.fullmatch(r"(?:Option|Box)<(.*)>", kind)) is not None:
        return inner(one[1])
    if (one := re.fullmatch(r"Vec<(.*)>", kind)) is not None:
        found, suffix = inner(one[1])
        return found, f"[]{suffix}"
    if (one := re.fullmatch(r"BTreeMap<[^,]*, (.*)>", kind)) is not None:
        found, suffix = inner(one[1])
        return found, f".NAME{suffix}"
    return kind, ""


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("*.rs")) if place.is_dir() else [place]


def _text(about: str) -> str:
    return " ".join(line.strip().removeprefix("///").strip() for line in about.strip().splitlines())


def _fields(struct: str, body: str) -> list[Field]:
    fields = []
    for about, attributes, name, kind in _FIELD.findall(f"{body}\n"):
        used = [
            word for inside in _SERDE.findall(attributes) for word in re.findall(r"(\w+)(?: = \"[^\"]*\")?", inside)
        ]
        if unread := sorted(set(used) - READ):
            raise SystemExit(
                f"{struct}.{name}: serde({', '.join(unread)}) changes the document, and tools/reference/structs.py "
                f"does not read it; expected {', '.join(sorted(READ))}"
            )
        left_out = " Left out where it is empty." if "skip_serializing_if" in attributes else ""
        text = _text(about).replace("`None`", "`null`") + left_out
        fields.append(Field(name, kind or "u64", text, "serde(flatten)" in attributes))
    return fields


def _of_python(file: Path) -> Iterator[tuple[str, Struct]]:
    """The TypedDicts of a module; the docstring below a key is its meaning."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            fields = [
                Field(key.target.id, _kind(ast.unparse(key.annotation)), _docstring(about))
                for key, about in zip(node.body, node.body[1:], strict=False)
                if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
            ]
            yield node.name, Struct(ast.get_docstring(node) or "", fields)


def _docstring(node: ast.stmt) -> str:
    return str(ast.literal_eval(node.value)) if isinstance(node, ast.Expr) else ""


def _kind(annotation: str) -> str:
    """A type of Python in Rust's words."""
    if (one := re.fullmatch(r"NotRequired\[(.*)\]", annotation)) is not None:
        return _kind(one[1])
    if (one := re.fullmatch(r"dict\[str, .*\]", annotation)) is not None:
        return "BTreeMap<String, Value>"
    kind, bar, _ = annotation.partition(" | None")
    return f"Option<{_PYTHON.get(kind, kind)}>" if bar else _PYTHON.get(kind, kind)
