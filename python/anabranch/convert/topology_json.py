"""Reads JSON of nodes and links: of ``topohub``, with a traffic matrix, and of networkx (node-link)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anabranch.convert import json_text, topology
from anabranch.convert.content import Description, Notes, Source
from anabranch.convert.json_text import Node
from anabranch.errors import nearest


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file begins as a graph in JSON does."""
    return head.lstrip().startswith(b"{") and (
        b'"multigraph"' in head or (b'"nodes"' in head and (b'"links"' in head or b'"edges"' in head))
    )


def read(source: Source, notes: Notes) -> Description:
    """The topology as a scenario.

    Raises:
        UserError: It is not JSON, or no topology.
    """
    text = source.text()
    root = Node(text, json_text.parse(text))
    about = root.get("graph")
    name = about.get("name") if about is not None else None
    directed = root.get("directed")
    graph = topology.Graph(
        name.text() if name is not None else Path(source.name).stem,
        directed=directed is not None and directed.value is True,
    )
    for node in root.need("nodes").entries():
        identity = _key(node.need("id"))
        if identity in graph.nodes:
            raise node.error(f"node {identity} is there twice")
        label = node.get("name") or node.get("label")
        graph.nodes[identity] = topology.Node(
            identity, str(label.value) if label is not None else identity, _position(node)
        )
    edges = root.get("links") or root.need("edges")
    for edge in edges.entries():
        attributes = {key: value.value for key, value in edge.items() if key not in ("source", "target", "key")}
        ends = [_key(edge.need(end)) for end in ("source", "target")]
        graph.edges.append(topology.Edge(ends[0], ends[1], attributes, edge.error))
    demands = about.get("demands") if about is not None else None
    if demands is not None:
        _add_demands(graph, demands)
    return topology.describe(graph, source.routing, notes)


def _key(node: Node) -> str:
    if isinstance(node.value, bool) or not isinstance(node.value, (str, int)):
        raise node.error("the name or the number of a node was expected")
    return str(node.value)


def _position(node: Node) -> tuple[float, float] | None:
    found = node.get("pos")
    if found is None:
        return topology.position(node.value)
    # These positions begin with the longitude.
    values: Any = found.value
    return topology.position({"lat": values[1], "lon": values[0]}) if _is_pair(values) else None


def _is_pair(values: Any) -> bool:
    return isinstance(values, list) and len(values) == 2


def _add_demands(graph: topology.Graph, demands: Node) -> None:
    for source, row in demands.items():
        for target, value in row.items():
            for end, node in ((source, row), (target, value)):
                if end not in graph.nodes:
                    raise node.error(f'there is no node "{end}"', nearest(end, graph.nodes))
            if value.number() < 0:
                raise value.error("traffic of at least 0 was expected")
            graph.demands[source, target] = value.number()
