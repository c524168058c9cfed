"""Topologies: nodes, links with capacity, length and weight, and a traffic matrix, as a scenario.

Three formats are read as one :class:`Graph`: GraphML, GML and JSON of nodes and links. A demand of
the traffic matrix becomes a paced flow. Routes by weights or over equal costs are written out for
each flow, because a scenario's default is the fewest hops.
"""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.convert.content import Description, LinkTable, Notes
from anabranch.errors import UserError, nearest
from anabranch.keys.component import Component
from anabranch.text import quantity
from anabranch.text.spoken import argument

ROUTINGS = ("hops", "weights", "ecmp")
"""Values of ``--routing``."""

DEFAULT_RATE = "1 Gbit/s"
DEFAULT_DELAY_MS = 1.0
MS_PER_KM = 0.005
"""Propagation in fibre takes 5 µs per kilometre."""
EARTH_KM = 6371.0
MAX_PATHS = 8
"""Paths of equal cost among which a demand is divided."""
DURATION = "10 s"

_CAPACITIES = ("capacity", "bandwidth", "bw")
_DELAYS = ("delay", "latency")
_LENGTHS = ("dist", "distance", "length")
_WEIGHTS = ("weight", "cost", "metric")
_SPEEDS = ("linkspeedraw", "linkspeed", "linkspeedunits")
_KNOWN = frozenset((*_CAPACITIES, *_DELAYS, *_LENGTHS, *_WEIGHTS, *_SPEEDS))
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_RATE = re.compile(r"([0-9.]+)\s*([kMGT]?)(?:bit/s|bps|b/s|bit)?", re.IGNORECASE)

Refuse = Callable[[str], UserError]
"""Makes an error that names the position of an element."""


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes:
        key: Its identity in the file.
        label: Its name for people.
        position: Latitude and longitude, in degrees.
    """

    key: str
    label: str
    position: tuple[float, float] | None = None


@dataclass(frozen=True)
class Edge:
    """An edge: the keys of its ends, its attributes, and the function for errors at its position."""

    source: str
    target: str
    attributes: Mapping[str, Any]
    error: Refuse


@dataclass
class Graph:
    """A topology, as read from its file.

    Attributes:
        title: Its name.
        directed: Whether an edge is one direction only.
        nodes: The nodes by key.
        edges: The edges, in the order of the file.
        demands: Traffic in Mbit/s, by the keys of its ends.
    """

    title: str
    directed: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    demands: dict[tuple[str, str], float] = field(default_factory=dict)


@dataclass
class _Link:
    """A link of the scenario: its ends, and the rates and weights that the file gives for each direction."""

    name: str
    ends: tuple[str, str]
    rates: dict[bool, float] = field(default_factory=dict)
    weights: dict[bool, float] = field(default_factory=dict)
    delay_ms: float = 0.0


Costs = dict[str, list[tuple[str, float, str]]]
"""By node: the neighbour, the cost of the hop, and the link."""


def describe(graph: Graph, routing: str | None, notes: Notes) -> Description:
    """A scenario of a topology.

    Args:
        graph: The topology.
        routing: One of :data:`ROUTINGS`; by default weights if there are any, otherwise hops.
        notes: Receives losses and additions.

    Raises:
        UserError: An edge is wrong, or there is none.
    """
    links = _links(graph, notes)
    if not links:
        raise UserError(f"{graph.title}: the topology has no link between two nodes")
    weighted = any(key.lower() in _WEIGHTS for edge in graph.edges for key in edge.attributes)
    routing = routing or ("weights" if weighted else "hops")
    if routing == "weights" and not weighted:
        notes.lost("routing by weights: no edge has a weight, so each counts as 1")
    names = _unique({key: node.label or key for key, node in graph.nodes.items()})
    tables = {link.name: _link_table(link, names) for link in links}
    flows = _flows(graph, links, names, routing, notes)
    _note_rest(graph, links, notes)
    return Description({"title": graph.title, "duration": DURATION, "link": tables, "flow": flows})


def check_routing(routing: str) -> None:
    """Refuse an unknown routing.

    Raises:
        UserError: There is none of that name.
    """
    if routing not in ROUTINGS:
        told = argument("routing", routing)
        raise UserError(f'{told}: there is no routing "{routing}"', hint=nearest(routing, ROUTINGS))


def position(attributes: Mapping[str, Any]) -> tuple[float, float] | None:
    """Latitude and longitude among a node's attributes."""
    lower = {key.lower(): value for key, value in attributes.items()}
    for names in (("latitude", "longitude"), ("lat", "lon")):
        try:
            found = (_as_number(lower[names[0]]), _as_number(lower[names[1]]))
        except (KeyError, TypeError, ValueError):
            continue
        if abs(found[0]) <= 90 and abs(found[1]) <= 360:
            return found
    return None


# --- Links ---------------------------------------------------------------------------------


def _links(graph: Graph, notes: Notes) -> list[_Link]:
    """A link for each pair of nodes that has an edge; parallel edges become one link."""
    found: dict[frozenset[str], _Link] = {}
    parallel: dict[str, int] = {}
    guessed = {"rate": 0, "delay": 0}
    slugs = _unique({key: node.label or key for key, node in graph.nodes.items()})
    for edge in graph.edges:
        for end in (edge.source, edge.target):
            if end not in graph.nodes:
                raise edge.error(f'there is no node "{end}"')
        if edge.source == edge.target:
            notes.lost(f"a loop at {slugs[edge.source]}")
            continue
        pair = frozenset((edge.source, edge.target))
        link = found.get(pair)
        if link is None:
            name = f"{slugs[edge.source]}--{slugs[edge.target]}"
            link = found[pair] = _Link(name, (edge.source, edge.target))
            link.delay_ms = _delay_ms(graph, edge, guessed)
        forward = edge.source == link.ends[0]
        rate, weight = _rate(edge), _number(edge, _WEIGHTS)
        guessed["rate"] += rate is None
        if forward in link.rates:
            parallel[link.name] = parallel.get(link.name, 1) + 1
        for side in (forward,) if graph.directed else (True, False):
            link.rates[side] = link.rates.get(side, 0.0) + (rate or 0.0)
            if weight is not None:
                link.weights[side] = min(weight, link.weights.get(side, math.inf))
    for name, count in parallel.items():
        notes.lost(f"{name} is {count} parallel edges: they are one link with the sum of their capacities")
    if graph.directed and (single := [link.name for link in found.values() if len(link.rates) == 1]):
        notes.lost(f"edges of one direction ({', '.join(single[:3])}): {len(single):,}, both get its values")
    if guessed["rate"]:
        notes.remarks.append(f"edges without a capacity get {DEFAULT_RATE}: {guessed['rate']:,}")
    if guessed["delay"]:
        notes.remarks.append(
            f"links without delay, length or positions get {DEFAULT_DELAY_MS:g} ms: {guessed['delay']:,}"
        )
    return list(found.values())


def _rate(edge: Edge) -> float | None:
    """The capacity in bit/s; a bare number of a capacity is in Mbit/s, as traffic matrices are."""
    lower = {key.lower(): value for key, value in edge.attributes.items()}
    if lower.get("linkspeedraw") not in (None, ""):
        return _positive(edge, "LinkSpeedRaw", lower["linkspeedraw"])
    if lower.get("linkspeed") not in (None, ""):
        found = re.fullmatch(r"([0-9.]+)", str(lower["linkspeed"]).strip())
        unit = _PREFIXES.get(str(lower.get("linkspeedunits", "M")).strip().lower()[:1])
        # Topology Zoo also has ranges and words in this attribute.
        return _positive(edge, "LinkSpeed", found[1]) * unit if found and unit else None
    for name in _CAPACITIES:
        given = lower.get(name)
        if given is None or given == "":
            continue
        if isinstance(given, (int, float)):
            return _positive(edge, name, given) * 1e6
        found = _RATE.fullmatch(str(given).strip())
        if found is None:
            raise edge.error(f'{name} is "{given}"; a rate was expected, for example "10 Gbit/s"')
        bare = re.fullmatch(r"[0-9.]+", str(given).strip()) is not None
        return _positive(edge, name, found[1]) * (1e6 if bare else _PREFIXES[found[2].lower()])
    return None


def _delay_ms(graph: Graph, edge: Edge, guessed: dict[str, int]) -> float:
    """The delay from a delay in ms, a length in km, or the positions of both ends."""
    given = _number(edge, _DELAYS)
    if given is not None:
        return given
    km = _number(edge, _LENGTHS)
    if km is None:
        a, b = (graph.nodes[key].position for key in (edge.source, edge.target))
        km = _great_circle_km(a, b) if a is not None and b is not None else None
    if km is None:
        guessed["delay"] += 1
        return DEFAULT_DELAY_MS
    return km * MS_PER_KM


def _great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The distance of two positions, by the haversine formula."""
    (lat_a, lon_a), (lat_b, lon_b) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    half = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(min(half, 1.0)))


def _number(edge: Edge, names: tuple[str, ...]) -> float | None:
    """The first of these attributes, a number of at least 0."""
    lower = {key.lower(): value for key, value in edge.attributes.items()}
    for name in names:
        given = lower.get(name)
        if given is None or given == "":
            continue
        value = _float(edge, name, given)
        if value < 0:
            raise edge.error(f"{name} is {given}; a number of at least 0 was expected")
        return value
    return None


def _positive(edge: Edge, name: str, given: Any) -> float:
    value = _float(edge, name, given)
    if value <= 0:
        raise edge.error(f"{name} is {given}; a number above 0 was expected")
    return value


def _float(edge: Edge, name: str, given: Any) -> float:
    try:
        value = _as_number(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not abs(value) < 1e18:
        raise edge.error(f"{name} is {str(given)[:40]!r}; a number was expected")
    return value


def _as_number(given: Any) -> float:
    """An attribute as a number; NaN for text that is none."""
    if isinstance(given, str):
        found = quantity.number(given.strip())
        return math.nan if found is None else found
    return float(given)


def _link_table(link: _Link, names: Mapping[str, str]) -> LinkTable:
    table: LinkTable = {"between": [names[end] for end in link.ends]}
    rates = [link.rates.get(side) or link.rates.get(not side) for side in (True, False)]
    told = [_rate_text(rate) for rate in rates]
    if told[0] == told[1]:
        table["rate"] = told[0]
    # Links of a wide-area network with less than a microsecond are within a building.
    table["delay"] = f"{max(round(link.delay_ms * 1000), 1)} us"
    table["queue"] = {"kind": "drop-tail", "limit": "1 bdp"}
    if told[0] != told[1]:
        table["forward"], table["reverse"] = {"rate": told[0]}, {"rate": told[1]}
    return table


def _rate_text(rate: float | None) -> str:
    if not rate:
        return DEFAULT_RATE
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate >= factor and rate % (factor / 1000) == 0:
            return f"{rate / factor:g} {unit}"
    return f"{max(round(rate), 1)} bit/s"


# --- Flows ---------------------------------------------------------------------------------


def _flows(
    graph: Graph, links: list[_Link], names: Mapping[str, str], routing: str, notes: Notes
) -> dict[str, Component]:
    costs = _costs(links, by_weight=routing != "hops")
    flows: dict[str, Component] = {}
    left_out = 0
    for (source, target), mbit_s in graph.demands.items():
        paths = [] if source == target else _paths(costs, source, target, MAX_PATHS if routing == "ecmp" else 1)
        if not paths or not mbit_s > 0:
            left_out += 1
            continue
        for number, path in enumerate(paths):
            name = f"{names[source]}--{names[target]}" + (f"--{number + 1}" if len(paths) > 1 else "")
            rate = _rate_text(round(mbit_s * 1e6 / len(paths)))
            flows[name] = {"from": names[source], "to": names[target], "workload": {"kind": "paced", "rate": rate},
                           **_route(path, routing)}  # fmt: skip
    if left_out:
        notes.lost(f"demands of no traffic, from a node to itself, or without a path: {left_out:,}")
    if flows:
        notes.remarks.append("demands are taken for Mbit/s; each is a paced TCP flow")
    else:
        source, target, path = _farthest(costs)
        notes.remarks.append(
            f"there is no traffic matrix; a bulk flow from {names[source]} to {names[target]} is added"
        )
        flows["main"] = {"from": names[source], "to": names[target], **_route(path, routing)}
    if routing == "ecmp":
        notes.lost(f"ECMP by a hash of each connection: a demand is divided evenly among at most {MAX_PATHS} paths")
    return flows


def _route(path: list[str], routing: str) -> dict[str, list[str]]:
    return {} if routing == "hops" else {"route": path, "return_route": path[::-1]}


def _costs(links: list[_Link], *, by_weight: bool) -> Costs:
    costs: Costs = {}
    for link in links:
        for side, (here, there) in ((True, link.ends), (False, link.ends[::-1])):
            weight = link.weights.get(side, link.weights.get(not side, 1.0)) if by_weight else 1.0
            costs.setdefault(here, []).append((there, weight, link.name))
    return costs


def _paths(costs: Costs, source: str, target: str, most: int) -> list[list[str]]:
    """The links of at most ``most`` paths of least cost, in the order of the file."""
    if source not in costs or target not in costs:
        return []
    distance = _distances(costs, source)
    if target not in distance:
        return []
    return [path for path, _ in zip(_walk(_before(costs, distance), source, target), range(most), strict=False)]


def _before(costs: Costs, distance: Mapping[str, float]) -> dict[str, list[tuple[str, str]]]:
    """By node: the previous nodes and links of paths of least cost."""
    before: dict[str, list[tuple[str, str]]] = {}
    for here, ways in costs.items():
        for there, cost, link in ways:
            # A hop without cost would permit a loop.
            is_least = here in distance and math.isclose(distance[here] + cost, distance[there], abs_tol=1e-12)
            if is_least and (distance[here], here) < (distance[there], there):
                before.setdefault(there, []).append((here, link))
    return before


def _walk(before: Mapping[str, list[tuple[str, str]]], source: str, target: str) -> Iterator[list[str]]:
    """Every path, traced back from the target, as the links from the source on."""
    stack: list[tuple[str, list[str]]] = [(target, [])]
    while stack:
        here, behind = stack.pop()
        if here == source:
            yield behind
            continue
        stack += [(there, [link, *behind]) for there, link in reversed(before.get(here, []))]


def _distances(costs: Costs, source: str) -> dict[str, float]:
    """The least cost to each node, by Dijkstra's algorithm."""
    distance: dict[str, float] = {}
    queue = [(0.0, source)]
    while queue:
        reached, here = heapq.heappop(queue)
        if here in distance:
            continue
        distance[here] = reached
        for there, cost, _ in costs[here]:
            if there not in distance:
                heapq.heappush(queue, (reached + cost, there))
    return distance


def _farthest(costs: Costs) -> tuple[str, str, list[str]]:
    """The first node, the node that is farthest from it, and the path between them."""
    source = next(iter(costs))
    distance = _distances(costs, source)
    target = max(distance, key=lambda key: (distance[key], key != source))
    return source, target, _paths(costs, source, target, 1)[0]


# --- Names and notes ---------------------------------------------------------------------------


def _unique(labels: Mapping[str, str]) -> dict[str, str]:
    """Distinct names of hosts that need no quotation marks."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key, label in labels.items():
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-") or "node"
        name, number = slug, 2
        while name in taken:
            name, number = f"{slug}-{number}", number + 1
        taken.add(name)
        names[key] = name
    return names


def _note_rest(graph: Graph, links: list[_Link], notes: Notes) -> None:
    linked = {end for link in links for end in link.ends}
    alone = [node.label or key for key, node in graph.nodes.items() if key not in linked]
    if alone:
        notes.lost(f"nodes without a link ({', '.join(alone[:5])}{', …' if len(alone) > 5 else ''}): {len(alone):,}")
    others = sorted({key for edge in graph.edges for key in edge.attributes if key.lower() not in _KNOWN})
    if others:
        notes.lost(f"attributes of edges: {', '.join(others)}")
