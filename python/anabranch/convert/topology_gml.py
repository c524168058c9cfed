"""Reads GML in the form of Internet Topology Zoo: nested lists of keys and values."""

from __future__ import annotations

import html
import re
from functools import partial
from pathlib import Path
from typing import Any

from anabranch.convert import topology
from anabranch.convert.content import Description, Notes, Source, Text

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+|\#[^\n]*)|(?P<open>\[)|(?P<close>\])|"(?P<string>[^"]*)"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)""",
)

List = list[tuple[str, Any, int]]
"""Keys, values (lists among them), and the offset of each."""


def recognise(name: str, head: bytes) -> bool:
    """Whether a file is GML, by its name or by a graph in it."""
    return name.lower().endswith(".gml") or re.search(rb"^\s*graph\s*\[", head, re.MULTILINE) is not None


def read(source: Source, notes: Notes) -> Description:
    """The topology as a scenario.

    Raises:
        UserError: It is not GML, or no topology.
    """
    text = source.text()
    return topology.describe(_graph(text, parse(text), Path(source.name).stem), source.routing, notes)


def parse(text: Text) -> List:
    """The keys and values of a document.

    Raises:
        UserError: It is not GML; the error has line and column.
    """
    top: List = []
    stack: list[tuple[List, int]] = [(top, 0)]
    key: tuple[str, int] | None = None
    at = 0
    while at < len(text.text):
        found = _TOKEN.match(text.text, at)
        if found is None:
            raise text.error(at, "not valid GML: a key, a number, a string or a list was expected")
        start, at, kind = at, found.end(), found.lastgroup
        if kind == "space":
            continue
        if kind == "close":
            if key is not None or len(stack) == 1:
                raise text.error(start, "not valid GML: a value was expected" if key else "there is no list to close")
            stack.pop()
        elif key is None:
            if kind != "word":
                raise text.error(start, "not valid GML: a key was expected")
            key = (found["word"], start)
        else:
            value = _value(text, found, start)
            stack[-1][0].append((key[0], value, key[1]))
            if kind == "open":
                stack.append((value, start))
            key = None
    if len(stack) > 1 or key is not None:
        raise text.error(stack[-1][1] if key is None else key[1], "not valid GML: the file ends in the middle of this")
    return top


def _value(text: Text, found: re.Match[str], at: int) -> Any:
    kind = found.lastgroup
    if kind == "open":
        return []
    if kind == "string":
        return html.unescape(found["string"])
    if kind == "number":
        told = found["number"]
        return int(told) if re.fullmatch(r"[+-]?[0-9]{1,18}", told) else float(told)
    raise text.error(at, f'not valid GML: a value was expected, not "{found[0][:40]}"')


def _graph(text: Text, document: List, title: str) -> topology.Graph:
    graphs = [(value, at) for key, value, at in document if key == "graph" and isinstance(value, list)]
    if not graphs:
        raise text.error(0, 'there is no "graph [ … ]"')
    content, at = graphs[0]
    plain = {key: value for key, value, _ in content if not isinstance(value, list)}
    label = plain.get("label") or plain.get("name") or plain.get("Network") or title
    graph = topology.Graph(str(label), directed=plain.get("directed") == 1)
    for key, value, at in content:
        if key not in ("node", "edge") or not isinstance(value, list):
            continue
        attributes = {name: told for name, told, _ in value if not isinstance(told, list)}
        for needed in ("id",) if key == "node" else ("source", "target"):
            if needed not in attributes:
                raise text.error(at, f'"{needed}" was expected and is missing')
        if key == "node":
            identity = str(attributes["id"])
            if identity in graph.nodes:
                raise text.error(at, f"node {identity} is there twice")
            told = str(attributes.get("label", identity))
            graph.nodes[identity] = topology.Node(identity, told, topology.position(attributes))
        else:
            ends = [str(attributes.pop(end)) for end in ("source", "target")]
            graph.edges.append(topology.Edge(ends[0], ends[1], attributes, partial(text.error, at)))
    return graph
