"""Check that crates and Python's rooms keep to their layers, and the engine to its rules.

A crate may depend only on the crates of lower layers. The engine's crates forbid unsafe code. Their
sources use no clock, I/O, threads, hash maps or transcendental functions of the standard library.
Clippy enforces the rules for sources too; this check also covers code that is compiled out, and no
attribute can disable it.

A room is a folder of ``python/anabranch``, or a module beside the folders. Its modules import those of floors below
theirs, so that no circle goes through two rooms. A function may import from a floor above when it is
called, for example to draw a result. These rooms are listed, and the list only gets shorter.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_CORE = frozenset({"anabranch-core"})
# Links and queues depend on packets, not on the hosts that send them.
_PATH = _CORE | {"anabranch-wire"}
_TCP = _PATH | {"anabranch-congestion"}
_FEC = _TCP | {"anabranch-erasure", "anabranch-tcp"}
_SCENARIO = _FEC | {"anabranch-fec", "anabranch-path"}
# Workloads (replays) and the analysis read captures.
_ENGINE = _SCENARIO | {"anabranch-capture", "anabranch-document", "anabranch-scenario"}
# The tunnel's core depends on queues, codes and addresses; the simulator and the daemon are its two
# shells.
_GATEWAY = _PATH | {"anabranch-erasure", "anabranch-path"}
# Files are opened outside the engine; their errors use the wording of the core.
_SHELL = _ENGINE | {"anabranch-engine", "anabranch-files"}
_FACADE = _SHELL | {"anabranch-bpf", "anabranch-live", "anabranch-gateway"}
_DIAGNOSE = _PATH | {"anabranch-capture", "anabranch-qlog"}

# Rooms of Python by floor, the lowest first.
FLOORS: Sequence[frozenset[str]] = (
    frozenset({"control", "errors", "interrupt"}),
    frozenset({"control_errors", "extras", "text"}),
    frozenset({"files", "keys", "limits", "progress", "statistics"}),
    frozenset({"builders", "result"}),
    frozenset({"live"}),
    frozenset({"scenario"}),
    frozenset({"charts", "convert", "diagnosis", "sweep", "why"}),
    frozenset({"aqm", "fitted", "gateway", "installed", "kernel", "multipoint", "studio"}),
    frozenset({"compare", "learn", "plans", "script", "study", "validate", "vectors"}),
    frozenset({"plot"}),
    frozenset({"report", "studio"}),
    frozenset({"evaluate"}),
    frozenset({"stress"}),
    frozenset({"cli"}),
    frozenset({"entry"}),
    frozenset({"__main__"}),
)

# Rooms whose functions import from a floor that is not below theirs.
LATER: frozenset[tuple[str, str]] = frozenset(
    {
        ("compare", "plot"),
        ("diagnosis", "plot"),
        ("diagnosis", "report"),
        ("errors", "text"),
        ("files", "convert"),
        ("files", "result"),
        ("fitted", "plot"),
        ("interrupt", "files"),
        ("keys", "scenario"),
        ("result", "diagnosis"),
        ("result", "plot"),
        ("result", "report"),
        ("result", "why"),
        ("scenario", "kernel"),
        ("scenario", "sweep"),
        ("study", "plot"),
        ("study", "report"),
        ("sweep", "kernel"),
        ("sweep", "plot"),
        ("sweep", "report"),
    }
)

MOST_AT_THE_ROOT = 12
"""Modules of Python outside the rooms."""

# The workspace crates on which each crate may depend. The live engine and the gateway do not depend
# on each other; the façade combines all crates.
ALLOWED: Mapping[str, frozenset[str]] = {
    "anabranch-core": frozenset(),
    "anabranch-congestion": _CORE,
    "anabranch-erasure": frozenset(),
    "anabranch-wire": _CORE,
    "anabranch-tcp": _TCP,
    "anabranch-fec": _FEC,
    "anabranch-path": _PATH,
    "anabranch-capture": _PATH,
    "anabranch-qlog": frozenset(),
    "anabranch-columns": frozenset(),
    "anabranch-diagnose": _DIAGNOSE,
    "anabranch-document": frozenset(),
    "anabranch-scenario": _SCENARIO | {"anabranch-capture", "anabranch-document"},
    "anabranch-files": frozenset({"anabranch-core"}),
    "anabranch-engine": _ENGINE | {"anabranch-gateway"},
    "anabranch-script": _SCENARIO,
    # Its tests run scenarios.
    "anabranch-bpf": _SHELL,
    # `anabranch-bpf` loads it at run time.
    "anabranch-loader": frozenset(),
    # Behaviour scripts also drive the kernel.
    "anabranch-live": _SHELL | {"anabranch-bpf", "anabranch-script"},
    "anabranch-gateway": _GATEWAY,
    "anabranch-gatewayd": _PATH | {"anabranch-document", "anabranch-files", "anabranch-gateway"},
    "anabranch-groupd": _PATH | {"anabranch-document", "anabranch-files", "anabranch-path"},
    "anabranch": _FACADE,
    "anabranch-results": _FACADE | {"anabranch", "anabranch-columns"},
    "anabranch-py": _FACADE
    | {"anabranch", "anabranch-columns", "anabranch-diagnose", "anabranch-results", "anabranch-script"},
    # Compiled to WebAssembly: a page's engine.
    "anabranch-studio": _FACADE | {"anabranch", "anabranch-columns", "anabranch-diagnose", "anabranch-results"},
    "anabranch-bench": _FACADE | {"anabranch"},
}

# Crates that a crate must not link, directly or indirectly: a middlebox is no host.
UNREACHABLE: Mapping[str, frozenset[str]] = {
    name: frozenset({"anabranch-congestion", "anabranch-tcp", "anabranch-fec"})
    for name in ("anabranch-wire", "anabranch-path", "anabranch-gateway", "anabranch-gatewayd", "anabranch-groupd")
}

# The crates to which the engine's rules apply, by folder.
ENGINE = (
    "core",
    "congestion",
    "erasure",
    "wire",
    "tcp",
    "fec",
    "path",
    "document",
    "scenario",
    "engine",
    "gateway",
    "script",
)

# The crates that may hold unsafe code.
UNSAFE_ALLOWED = frozenset(
    {"anabranch-bpf", "anabranch-columns", "anabranch-live", "anabranch-loader", "anabranch-py", "anabranch-studio"}
)

_BANNED_PATHS = {
    "std::time::Instant": "time is an argument",
    "std::time::SystemTime": "time is an argument",
    "std::fs": "the engine does no I/O",
    "std::net": "the engine does no I/O",
    "std::io": "the engine does no I/O",
    "std::env": "the engine does not look at its surroundings",
    "std::process": "the engine does not look at its surroundings",
    "std::thread": "one simulation is one thread",
    "std::collections::HashMap": "its iteration order is not part of the model",
    "std::collections::HashSet": "its iteration order is not part of the model",
    "std::collections::hash_map": "its iteration order is not part of the model",
    "std::hash::RandomState": "differs from run to run",
}

# Other modules may have types with the last name of a banned one (the engine has its own
# `Instant`), so those are distinguished by path. These names have no other meaning.
_BANNED_WORDS = {
    "HashMap": "its iteration order is not part of the model",
    "HashSet": "its iteration order is not part of the model",
    "SystemTime": "time is an argument",
    "unsafe": "unsafe code is forbidden here",
}

_TRANSCENDENTAL = [
    "powf",
    "powi",
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log",
    "log2",
    "log10",
    "cbrt",
    "hypot",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sin_cos",
    "mul_add",
]
_CALL = re.compile(r"(?:\.|\bf(?:32|64)::)(" + "|".join(_TRANSCENDENTAL) + r")\s*\(")

_TOKENS = re.compile(
    r"""
      //[^\n]*                                      # a line comment
    | (?P<block>/\*)                                # a block comment begins
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)            # a raw string
    | b?"(?:\\.|[^"\\])*"                           # a string
    | b?'(?:\\[^\n]+?|[^'\\\n])'                    # a character (a lifetime has no second quote)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Finding:
    """A broken rule, its location and the reason for the rule."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def check_edges(metadata: Mapping[str, Any]) -> list[Finding]:
    """Compare the dependencies of each kind inside the workspace with the layers."""
    findings = []
    members = {package["name"] for package in metadata["packages"]}
    for package in metadata["packages"]:
        name = package["name"]
        if name not in ALLOWED:
            findings.append(Finding(name, "stands in no layer: add it to tools/check_layers.py"))
            continue
        for dependency in package["dependencies"]:
            target = dependency["name"]
            if target in members and target not in ALLOWED[name]:
                kind = dependency["kind"] or "normal"
                findings.append(Finding(name, f"must not know {target} ({kind} dependency)"))
    return findings


def check_reach(metadata: Mapping[str, Any]) -> list[Finding]:
    """Follow the workspace's dependencies, without those of tests, to what a crate must not link."""
    known = {
        package["name"]: [each["name"] for each in package["dependencies"] if each["kind"] != "dev"]
        for package in metadata["packages"]
    }
    findings = []
    for name, forbidden in UNREACHABLE.items():
        ways = {name: name}
        unvisited = [name]
        while unvisited:
            at = unvisited.pop()
            for target in known.get(at, []):
                if target not in ways:
                    ways[target] = f"{ways[at]} → {target}"
                    unvisited.append(target)
        findings += [
            Finding(name, f"must not link {target} ({ways[target]})") for target in sorted(forbidden & ways.keys())
        ]
    return findings


def blank(source: str) -> str:
    """Replace comments and literals by blanks; lines keep their numbers."""
    out: list[str] = []
    position = 0
    while match := _TOKENS.search(source, position):
        start, end = match.span()
        if match["block"]:
            end = _end_of_block_comment(source, start)
        out.append(source[position:start])
        out.append(re.sub(r"[^\n]", " ", source[start:end]))
        position = end
    out.append(source[position:])
    return "".join(out)


def _end_of_block_comment(source: str, start: int) -> int:
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(source, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(source)


def imports(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and full path of everything that ``use`` declarations name."""
    for match in re.finditer(r"\buse\s+([^;]+);", code):
        line = code.count("\n", 0, match.start()) + 1
        for path in _expand(re.sub(r"\s+as\s+\w+", "", match[1])):
            yield line, path.removeprefix("::")


def _expand(tree: str) -> Iterator[str]:
    tree = "".join(tree.split())
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree
        return
    depth, item = 0, ""
    for character in rest[: rest.rindex("}")]:
        if character == "," and depth == 0:
            if item:
                yield from _expand(head + item)
            item = ""
            continue
        depth += (character == "{") - (character == "}")
        item += character
    if item:
        yield from _expand(head + item)


def check_source(source: str, where: str) -> list[Finding]:
    """Find names that the engine's sources may not use."""
    code = blank(source)
    findings = []
    for line, path in imports(code):
        for banned, reason in _BANNED_PATHS.items():
            if path == banned or path.startswith(f"{banned}::"):
                findings.append(Finding(f"{where}:{line}", f"use of {path}: {reason}"))
    for number, text in enumerate(code.splitlines(), 1):
        used = re.match(r"\s*(pub(\([^)]*\))?\s+)?use\b", text)
        for banned, reason in _BANNED_PATHS.items():
            if not used and re.search(rf"\b{banned}\b", text):
                findings.append(Finding(f"{where}:{number}", f"{banned}: {reason}"))
        for word, reason in _BANNED_WORDS.items():
            if re.search(rf"(?<!::)\b{word}\b", text):
                findings.append(Finding(f"{where}:{number}", f"{word}: {reason}"))
        for call in _CALL.finditer(text):
            reason = "differs between platforms, use anabranch_core::math"
            findings.append(Finding(f"{where}:{number}", f"{call[1]}(): {reason}"))
    return findings


def check_forbid(metadata: Mapping[str, Any], root: Path) -> list[Finding]:
    """Every crate outside the allowed ones must forbid unsafe code at its root."""
    findings = []
    for package in metadata["packages"]:
        if package["name"] in UNSAFE_ALLOWED:
            continue
        for target in package["targets"]:
            path = Path(target["src_path"])
            if "lib" in target["kind"] and "#![forbid(unsafe_code)]" not in path.read_text("utf-8"):
                where = str(path.relative_to(root))
                findings.append(Finding(where, "lacks #![forbid(unsafe_code)]"))
    return findings


def check_sources(root: Path) -> tuple[int, list[Finding]]:
    """Check every source file of the engine's crates; return their number, and the findings."""
    files = [file for crate in ENGINE for file in sorted((root / "crates" / crate / "src").rglob("*.rs"))]
    findings = []
    for file in files:
        findings += check_source(file.read_text("utf-8"), str(file.relative_to(root)))
    return len(files), findings


def python_imports(tree: ast.AST, later: bool = False) -> Iterator[tuple[str, bool]]:
    """Every name that a module imports from the package, dotted, and whether a function does it when it is called."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from python_imports(ast.Module([other], []), later)
            continue
        if isinstance(node, ast.Import):
            yield from ((one.name, later) for one in node.names if one.name.startswith("anabranch."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "anabranch":
            yield from ((f"{node.module}.{one.name}", later) for one in node.names)
        called = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from python_imports(node, later or called)


def check_rooms(package: Path, later: frozenset[tuple[str, str]] = LATER) -> tuple[int, list[Finding]]:
    """Compare the imports of Python's modules with the floors; how many modules there are, and the findings."""
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    files = [file for file in sorted(package.rglob("*.py")) if file != package / "__init__.py"]
    findings, used = [], set()
    for file in files:
        where = str(file.relative_to(package.parent))
        room = file.relative_to(package).parts[0].removesuffix(".py")
        if room not in floor:
            findings.append(Finding(where, "stands on no floor: add its room to tools/check_layers.py"))
            continue
        for name, is_called in python_imports(ast.parse(file.read_text("utf-8"))):
            other = name.split(".")[1]
            if other == room or floor.get(other, -1) < floor[room]:
                continue
            used.add((room, other))
            if not (is_called and (room, other) in later):
                findings.append(Finding(where, f"must not import {name}: {other} is not below {room}"))
    findings += [
        Finding("LATER", f"{room} imports nothing of {other} any more") for room, other in sorted(later - used)
    ]
    at_root = sum(1 for _ in package.glob("*.py"))
    if at_root > MOST_AT_THE_ROOT:
        findings.append(Finding(str(package), f"{at_root} modules outside the rooms, more than {MOST_AT_THE_ROOT}"))
    return len(files), findings


def main() -> int:
    """Check the workspace; print every finding."""
    output = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if output.returncode != 0:
        print(output.stderr, file=sys.stderr, end="")
        return 1
    metadata = json.loads(output.stdout)
    count, findings = check_sources(ROOT)
    findings += check_edges(metadata) + check_reach(metadata) + check_forbid(metadata, ROOT)
    modules, found = check_rooms(ROOT / "python" / "anabranch")
    findings += found
    if count == 0 or modules == 0:
        findings.append(Finding("crates", "no source file found: is this the checkout?"))
    for finding in findings:
        print(finding, file=sys.stderr)
    if findings:
        return 1
    told = f"{len(metadata['packages'])} crates, {count} engine sources and {modules} Python modules"
    print(f"layers: {told} keep the rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
