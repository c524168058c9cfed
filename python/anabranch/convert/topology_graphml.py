"""Reads GraphML, as Internet Topology Zoo and networkx write it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from xml.parsers import expat

from anabranch.convert import topology
from anabranch.convert.content import Description, Notes, Source, Text
from anabranch.convert.flowmonitor import offset
from anabranch.errors import nearest


@dataclass
class _Found:
    """State of the parser: open elements, and the graph."""

    graph: topology.Graph
    keys: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    element: tuple[str, dict[str, str], int] | None = None
    """The open node or edge: its kind, its XML attributes, and its offset."""
    values: dict[str, str] = field(default_factory=dict)
    graph_values: dict[str, str] = field(default_factory=dict)
    key: str | None = None
    told: list[str] = field(default_factory=list)


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file's root is GraphML's."""
    begin = head.removeprefix(b"\xef\xbb\xbf")
    return re.match(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<graphml\b", begin, re.DOTALL) is not None


def read(source: Source, notes: Notes) -> Description:
    """The topology as a scenario.

    Raises:
        UserError: It is not GraphML, or no topology.
    """
    graph = _Reader(source.text(), Path(source.name).stem).read()
    return topology.describe(graph, source.routing, notes)


class _Reader:
    """Reads one document."""

    def __init__(self, text: Text, title: str) -> None:
        self.text = text
        self.found = _Found(topology.Graph(title))
        self.parser = expat.ParserCreate()

    def read(self) -> topology.Graph:
        parser = self.parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            parser.Parse(self.text.text, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self.text.error(offset(self.text, error.lineno, error.offset), f"not valid XML: {reason}") from None
        except UnicodeEncodeError:
            raise self.text.error(0, "not valid XML: half a character") from None
        graph, values = self.found.graph, self.found.graph_values
        graph.title = values.get("label") or values.get("name") or values.get("Network") or graph.title
        return graph

    def _at(self) -> int:
        return offset(self.text, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber)

    def _refuse(self, *_: object) -> None:
        # Entities could make a small file large.
        raise self.text.error(self._at(), "a DTD; none was expected")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        found = self.found
        name = name.rpartition(":")[2]
        if not found.open and name != "graphml":
            raise self.text.error(self._at(), f"the root is <{name}>; <graphml> was expected")
        if name == "graph" and "graph" in found.open:
            raise self.text.error(self._at(), "a graph inside a graph; one graph was expected")
        if name == "hyperedge":
            raise self.text.error(self._at(), "a hyperedge; edges between two nodes were expected")
        found.open.append(name)
        if name == "key":
            found.keys[attributes.get("id", "")] = attributes.get("attr.name", attributes.get("id", ""))
        elif name == "graph":
            found.graph.directed = attributes.get("edgedefault") == "directed"
        elif name in ("node", "edge"):
            for needed in ("id",) if name == "node" else ("source", "target"):
                if needed not in attributes:
                    raise self.text.error(self._at(), f'<{name}> without "{needed}"', nearest(needed, attributes))
            found.element, found.values = (name, attributes, self._at()), {}
        elif name == "data":
            found.key, found.told = attributes.get("key", ""), []

    def _data(self, told: str) -> None:
        if self.found.key is not None:
            self.found.told.append(told)

    def _end(self, name: str) -> None:
        found = self.found
        name = name.rpartition(":")[2]
        found.open.pop()
        if name == "data" and found.key is not None:
            values = found.values if found.element is not None else found.graph_values
            values[found.keys.get(found.key, found.key)] = "".join(found.told).strip()
            found.key = None
        elif name in ("node", "edge") and found.element is not None:
            self._element(*found.element)
            found.element = None

    def _element(self, name: str, attributes: dict[str, str], at: int) -> None:
        graph, values = self.found.graph, self.found.values
        if name == "edge":
            refuse = partial(self.text.error, at)
            graph.edges.append(topology.Edge(attributes["source"], attributes["target"], values, refuse))
            return
        identity = attributes["id"]
        if identity in graph.nodes:
            raise self.text.error(at, f"node {identity} is there twice")
        label = values.get("label") or values.get("name") or identity
        graph.nodes[identity] = topology.Node(identity, label, topology.position(values))
