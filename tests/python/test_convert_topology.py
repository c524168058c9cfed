"""Topologies as scenarios: conversion of edges, paths of flows, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.convert import Converted, Options, convert_bytes
from anabranch.errors import UserError
from anabranch.text import toml_text

law = settings(deadline=None, max_examples=50)
"""No deadline: a time limit on a busy machine is meaningless."""

SQUARE = {
    "directed": False, "multigraph": False,
    "graph": {"name": "square", "demands": {"A": {"C": 40, "B": 10}}},
    "nodes": [{"id": name} for name in "ABCD"],
    "links": [
        {"source": "A", "target": "B", "dist": 100.0, "weight": 1},
        {"source": "B", "target": "C", "dist": 100.0, "weight": 1},
        {"source": "A", "target": "D", "dist": 100.0, "weight": 1},
        {"source": "D", "target": "C", "dist": 100.0, "weight": 1},
        {"source": "A", "target": "C", "dist": 100.0, "weight": 5},
    ],
}  # fmt: skip
"""Two paths of two links between A and C cost less than the direct link."""

GML = """
# Topology Zoo
graph [
  label "Testnet"
  node [ id 0 label "Z&#252;rich" Latitude 47.37 Longitude 8.54 ]
  node [ id 1 label "Bern" Latitude 46.95 Longitude 7.45 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 ]
  edge [ source 0 target 1 LinkSpeed "2.5" LinkSpeedUnits "G" ]
]
"""

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1" />
  <key attr.name="label" attr.type="string" for="node" id="d2" />
  <graph edgedefault="directed">
    <node id="0"><data key="d2">X</data></node>
    <node id="1"><data key="d2">Y</data></node>
    <edge source="0" target="1"><data key="d1">1000000.0</data></edge>
    <edge source="1" target="0"><data key="d1">2000000.0</data></edge>
  </graph>
</graphml>
"""


def converted(text: str, name: str = "given", routing: str | None = None) -> Converted:
    return convert_bytes(name, text.encode(), Path(), Options(routing=routing))


def document(text: str, name: str = "given", routing: str | None = None) -> dict[str, Any]:
    """The scenario, after the engine has accepted it."""
    content = converted(text, name, routing).content.decode()
    Scenario.from_text(content).resolve()
    found: dict[str, Any] = toml_text.parse(content, "converted.toml")
    return found


def routes(routing: str | None) -> dict[str, Any]:
    flows = document(json.dumps(SQUARE), routing=routing)["flow"]
    return {name: (flow["workload"]["rate"], flow.get("route")) for name, flow in flows.items()}


def test_demands_take_the_fewest_hops() -> None:
    assert routes("hops") == {"A--C": ("40 Mbit/s", None), "A--B": ("10 Mbit/s", None)}


def test_weights_choose_the_first_path_of_minimum_cost() -> None:
    expected = {"A--C": ("40 Mbit/s", ["A--B", "B--C"]), "A--B": ("10 Mbit/s", ["A--B"])}
    assert routes("weights") == expected
    assert routes(None) == expected


def test_ecmp_divides_a_demand_among_equal_costs() -> None:
    assert routes("ecmp") == {
        "A--C--1": ("20 Mbit/s", ["A--B", "B--C"]),
        "A--C--2": ("20 Mbit/s", ["A--D", "D--C"]),
        "A--B": ("10 Mbit/s", ["A--B"]),
    }


def test_flows_return_on_the_same_path() -> None:
    flows = document(json.dumps(SQUARE), routing="ecmp")["flow"]
    for flow in flows.values():
        assert flow["return_route"] == flow["route"][::-1]


def test_parallel_edges_add_up() -> None:
    told = converted(GML)
    link = document(GML)["link"]["Zurich--Bern"]
    assert link["rate"] == "12.5 Gbit/s"
    assert any("2 parallel edges" in note for note in told.notes)


def test_positions_give_a_delay() -> None:
    delay = document(GML)["link"]["Zurich--Bern"]["delay"]
    assert delay == "474 us", "95 km of fibre"


def test_directed_edges_are_directions_of_one_link() -> None:
    (link,) = document(GRAPHML)["link"].values()
    assert (link["forward"]["rate"], link["reverse"]["rate"]) == ("1 Mbit/s", "2 Mbit/s")
    assert not converted(GRAPHML).notes


def test_without_a_traffic_matrix_one_bulk_flow_is_added() -> None:
    told = converted(GRAPHML)
    assert document(GRAPHML)["flow"] == {"main": {"from": "X", "to": "Y"}}
    assert any("no traffic matrix" in remark for remark in told.remarks)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (GML.replace("target 1 LinkSpeed \"10\"", "target 9"), "a.gml", 'a.gml:7:3: there is no node "9"'),
        (GML.replace("source 0 target 1 LinkSpeed \"10\"", "source 0"), "a.gml",
         'a.gml:7:3: "target" was expected and is missing'),
        (GML.replace("id 1", "id ]"), "a.gml", "not valid GML: a value was expected"),
        (GML.replace("id 1", "id \u0661"), "a.gml", "not valid GML: a key, a number, a string or a list"),
        (GRAPHML.replace("1000000.0", "\u0661"), "a.xml", "LinkSpeedRaw is '\u0661'; a number was expected"),
        (GML + "]", "a.gml", "there is no list to close"),
        ("graph [ node [ id 1", "a.gml", "a.gml:1:14: not valid GML: the file ends in the middle of this"),
        (GRAPHML.replace('target="1"', 'target="7"'), "a.xml", 'a.xml:8:5: there is no node "7"'),
        (GRAPHML.replace("1000000.0", "-5"), "a.xml", "LinkSpeedRaw is -5; a number above 0 was expected"),
        (GRAPHML.replace("<graphml", "<!DOCTYPE x>\n<graphml", 1), "a.graphml", "a DTD; none was expected"),
        (GRAPHML.replace("</graph>", ""), "a.xml", "not valid XML: mismatched tag"),
        ('{"multigraph": false, "nodes": [{"id": 1}]}', "a.json", '"edges" was expected and is missing'),
        ('{"multigraph": false, "nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}', "a.json",
         'a.json:1:55: edges[0]: there is no node "2"'),
        ('{"multigraph": false, "nodes": [{"id": 1}], "edges": []}', "a.json", "has no link between two nodes"),
        ('{"multigraph": false, "nodes": [{"id": 1}], "edges": [], "graph": {"demands": {"1": {"3": 4}}}}', "a.json",
         'graph.demands.1.3: there is no node "3"'),
    ],
)  # fmt: skip
def test_bad_input_has_a_location(text: str, name: str, message: str) -> None:
    source = "graphml" if "DOCTYPE" in text else None
    with pytest.raises(UserError) as refused:
        convert_bytes(name, text.encode(), Path(), Options(source=source))
    assert message in str(refused.value)


def test_a_routing_is_refused_if_it_has_no_meaning() -> None:
    with pytest.raises(UserError, match='there is no routing "weight"'):
        converted(GML, routing="weight")
    with pytest.raises(UserError, match="is of topologies"):
        converted("1\n2\n3\n", routing="ecmp")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)


@law
@given(
    labels=st.lists(NAMES, min_size=2, max_size=6),
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12),
    rate=st.one_of(st.none(), st.floats(0.001, 1e6)),
    routing=st.sampled_from(["hops", "weights", "ecmp"]),
)
def test_every_connected_topology_is_a_scenario(
    labels: list[str], pairs: list[tuple[int, int]], rate: float | None, routing: str
) -> None:
    count = len(labels)
    edges = [{"source": a % count, "target": b % count, "capacity": rate} for a, b in pairs]
    if all(edge["source"] == edge["target"] for edge in edges):
        edges.append({"source": 0, "target": 1, "capacity": rate})
    text = json.dumps({
        "multigraph": True, "graph": {"demands": {"0": {"1": 3.5}}},
        "nodes": [{"id": i, "name": label} for i, label in enumerate(labels)], "edges": edges,
    })  # fmt: skip
    assert document(text, routing=routing)["flow"]


@law
@given(st.text(max_size=60))
def test_no_text_causes_an_internal_error(text: str) -> None:
    for source in ("gml", "graphml", "topohub"):
        try:
            convert_bytes("given", text.encode(), Path(), Options(source=source))
        except UserError:
            continue
