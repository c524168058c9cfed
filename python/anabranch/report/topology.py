"""The topology of a scenario as a drawing: nodes, and on each link its rate, delay, queue and impairments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.text import shown

MOST_LINKS = 30
"""Largest number of links in a drawing; a larger one would show no more than the table of links."""
MOST_WIDE = 1300
"""Largest width with nodes side by side, in units; a longer chain runs downwards so that its letters stay legible."""
_LETTER = 6.3
"""Width of a letter, at least on average."""
_LINE = 15
_MOST_LETTERS = 30
_UNLIMITED = "unlimited"
_NODE = 17
"""Half of a node's height."""
_MOST_NODE = 8
"""Largest number of letters of a node's name."""
_STEP = 56
"""Distance between two nodes of one layer."""
_AROUND = 26
"""Space before and after the boxes of a gap."""
_APART = 14
"""Space between two boxes."""


@dataclass(frozen=True)
class _Link:
    """A link or group between two nodes, with the lines of its box."""

    name: str
    ends: tuple[str, str]
    lines: tuple[str, ...]

    @property
    def width(self) -> float:
        return max(len(line) for line in (self.name, *self.lines)) * _LETTER + 18

    @property
    def height(self) -> float:
        return (1 + len(self.lines)) * _LINE + 10


def drawing(resolved: Mapping[str, Any]) -> str:
    """The topology, once for a wide and once for a narrow screen, and each flow in words; "" without a link."""
    links = list(_links(resolved))
    if not links:
        return ""
    flows = f"<ul class='flows'>{''.join(f'<li>{shown.html(line)}</li>' for line in _flows(resolved))}</ul>"
    if len(links) > MOST_LINKS:
        return f"<p class='soft'>{len(links)} links are too many for a drawing.</p>{flows}"
    layers = _layers(links, resolved)
    told = shown.html("Topology: " + "; ".join(_in_words(link) for link in links))
    wide, is_wide = _svg(links, layers, told, is_wide=True)
    narrow, _ = _svg(links, layers, told, is_wide=False)
    if not is_wide:
        return f"<div class='topology'>{narrow}</div>{flows}"
    return f"<div class='topology on-wide'>{wide}</div><div class='topology on-narrow'>{narrow}</div>{flows}"


def _in_words(link: _Link) -> str:
    return f"{link.name} from {link.ends[0]} to {link.ends[1]}: {', '.join(link.lines)}"


def _links(resolved: Mapping[str, Any]) -> Iterator[_Link]:
    for table in ("link", "group"):
        for name, link in resolved.get(table, {}).items():
            first, second = link["between"]
            yield _Link(_short(name), (first, second), tuple(_short(line) for line in _told(link)))


def _told(link: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a link's box; both directions if they differ."""
    forward, reverse = link.get("forward", link), link.get("reverse", link)
    if "members" in link:
        yield f"{link['members']} members, {link['spread']}"
    rate = _both(_rate(forward), _rate(reverse))
    delay = _both(_quantity(forward.get("delay")), _quantity(reverse.get("delay")))
    yield from [f"{rate} · {delay}"] if len(rate) + len(delay) + 3 <= _MOST_LETTERS else [rate, delay]
    there, back = list(_effects(forward)), list(_effects(reverse))
    if there == back:
        yield from there
    else:
        yield from (f"→ {line}" for line in there)
        yield from (f"← {line}" for line in back)


def _effects(way: Mapping[str, Any]) -> Iterator[str]:
    """The queue of one direction unless it is an unlimited FIFO, then its impairments."""
    queue = way.get("queue", {})
    limit = queue.get("limit", _UNLIMITED)
    if queue.get("kind") != "drop-tail" or limit != _UNLIMITED:
        yield f"{queue.get('kind', 'queue')}" + (f", {_quantity(limit)}" if limit != _UNLIMITED else "")
    if "held_limit" in way:
        yield f"holds {_quantity(way['held_limit'])}"
    if isinstance(queue.get("reorder"), Mapping):
        yield f"reorder: {_values(queue['reorder'])}"
    for one in way.get("impair", []):
        yield f"{one.get('kind', 'impairment')} {_values(one)}".strip()


def _rate(way: Mapping[str, Any]) -> str:
    service = way.get("service")
    kind = service.get("kind", "fixed") if isinstance(service, Mapping) else "fixed"
    rate = _quantity(way.get("rate", _UNLIMITED))
    if kind == "fixed":
        return rate
    is_traced = isinstance(service, Mapping) and "file" in service
    return f"{kind} rate" if is_traced else f"{rate}, {kind}"


def _values(one: Mapping[str, Any]) -> str:
    """The first two parameters, which are the most significant."""
    plain = [f"{key.replace('_', ' ')} {_quantity(value)}" for key, value in one.items()
             if key != "kind" and isinstance(value, (int, float, str)) and not isinstance(value, bool)]  # fmt: skip
    return ", ".join(plain[:2])


def _both(forward: str, reverse: str) -> str:
    return forward if forward == reverse else f"→ {forward} ← {reverse}"


def _quantity(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("kind", "variable"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _flows(resolved: Mapping[str, Any]) -> Iterator[str]:
    for name, flow in resolved.get("flow", {}).items():
        count = flow.get("count", 1)
        copies = f" × {count}" if count != 1 else ""
        yield f"{name}{copies}: {flow['from']} → {flow['to']}, {_carried(flow)}"


def _carried(flow: Mapping[str, Any]) -> str:
    """Congestion control and workload of a flow."""
    if not isinstance(flow.get("workload"), Mapping):
        return "packets of programs"
    control = f"{flow['cc']['kind']} over {flow.get('stack')}" if isinstance(flow.get("cc"), Mapping) else "UDP"
    return f"{control}, {flow['workload'].get('kind', 'bulk')}"


def _layers(links: Sequence[_Link], resolved: Mapping[str, Any]) -> list[list[str]]:
    """Nodes by their distance from the senders, so that data goes from the first layer to the last."""
    nodes = list(dict.fromkeys(end for link in links for end in link.ends))
    flows = list(resolved.get("flow", {}).values())
    receivers = {flow["to"] for flow in flows}
    senders = [flow["from"] for flow in flows if flow["from"] not in receivers] or [flow["from"] for flow in flows[:1]]
    distance: dict[str, int] = {}
    # All nodes come last, for the parts of the network that no sender reaches.
    for starts in (senders, *([node] for node in nodes)):
        queue = deque(dict.fromkeys(node for node in starts if node in nodes and node not in distance))
        distance.update(dict.fromkeys(queue, 0))
        while queue:
            node = queue.popleft()
            for end in (link.ends[1 - i] for link in links for i in (0, 1) if link.ends[i] == node):
                if end not in distance:
                    distance[end] = distance[node] + 1
                    queue.append(end)
    layers = ([node for node in nodes if distance[node] == layer] for layer in range(len(nodes)))
    return [layer for layer in layers if layer]


def _svg(links: Sequence[_Link], layers: Sequence[Sequence[str]], told: str, *, is_wide: bool) -> tuple[str, bool]:
    """The drawing, and whether it is wide. Data goes to the right if ``is_wide``, otherwise downwards."""
    depth = {node: layer for layer, nodes in enumerate(layers) for node in nodes}
    gaps: dict[int, list[_Link]] = {}
    for link in links:
        gaps.setdefault(min(depth[end] for end in link.ends), []).append(link)
    long = {link: (link.width, link.height) if is_wide else (link.height, link.width) for link in links}
    step = _STEP if is_wide else _STEP * 1.3
    room = [
        max((long[link][0] for link in gaps.get(layer, [])), default=0.0) + 2 * _AROUND for layer in range(len(layers))
    ]
    if layers and (len(layers) - 1) not in gaps:
        room[-1] = 0.0
    extent = max(
        *(len(nodes) * step for nodes in layers),
        *(sum(long[link][1] + _APART for link in gap) for gap in gaps.values()),
    )
    begins = [_NODE + 12 + sum(room[:layer]) + 2 * _NODE * layer for layer in range(len(layers))]
    at = {
        node: (begins[layer], extent * (i + 0.5) / len(nodes))
        for layer, nodes in enumerate(layers)
        for i, node in enumerate(nodes)
    }
    length = begins[-1] + room[-1] + _NODE + 12
    if is_wide and length > MOST_WIDE:
        return "", False
    lines, boxes = [], []
    for layer, gap in gaps.items():
        along = begins[layer] + _NODE + room[layer] / 2
        for link, across in _placed(gap, at, long):
            lines += [_curve(at[end], (along, across), is_wide=is_wide) for end in link.ends]
            boxes.append(_box(link, (along, across), is_wide=is_wide))
    nodes = [_node(node, place, is_wide=is_wide) for node, place in at.items()]
    extent += _NODE
    width, height = (length, extent) if is_wide else (extent, length)
    size = f"viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}'"
    head = f"<svg class='drawing' role='img' aria-label='{told}' {size}>"
    return f"{head}{''.join(lines)}{''.join(boxes)}{''.join(nodes)}</svg>", True


def _placed(
    gap: Sequence[_Link], at: Mapping[str, tuple[float, float]], long: Mapping[_Link, tuple[float, float]]
) -> Iterator[tuple[_Link, float]]:
    """The boxes between two layers: each near the middle of its ends, without overlap."""
    wanted = {link: sum(at[end][1] for end in link.ends) / 2 for link in gap}
    places: list[float] = []
    ordered = sorted(gap, key=lambda link: wanted[link])
    for i, link in enumerate(ordered):
        least = places[-1] + (long[ordered[i - 1]][1] + long[link][1]) / 2 + _APART if places else wanted[link]
        places.append(max(wanted[link], least))
    shift = sum(place - wanted[link] for link, place in zip(ordered, places, strict=True)) / len(ordered)
    yield from zip(ordered, (place - shift for place in places), strict=True)


def _point(place: tuple[float, float], *, is_wide: bool) -> tuple[float, float]:
    return place if is_wide else (place[1], place[0])


def _curve(begin: tuple[float, float], end: tuple[float, float], *, is_wide: bool) -> str:
    middle = (begin[0] + end[0]) / 2
    points = (begin, (middle, begin[1]), (middle, end[1]), end)
    a, b, c, d = (f"{x:.1f} {y:.1f}" for x, y in (_point(p, is_wide=is_wide) for p in points))
    return f"<path d='M{a}C{b} {c} {d}' fill='none' stroke='currentColor' stroke-width='1.5' opacity='.6'/>"


def _box(link: _Link, place: tuple[float, float], *, is_wide: bool) -> str:
    x, y = _point(place, is_wide=is_wide)
    left, top = x - link.width / 2, y - link.height / 2
    middle = f"x='{x:.1f}' text-anchor='middle'"
    texts = [f"<text class='strong' {middle} y='{top + 16:.1f}'>{shown.html(link.name)}</text>"]
    texts += [
        f"<text class='soft' {middle} y='{top + 16 + _LINE * i:.1f}'>{shown.html(line)}</text>"
        for i, line in enumerate(link.lines, 1)
    ]
    frame = (
        f"<rect x='{left:.1f}' y='{top:.1f}' width='{link.width:.1f}' height='{link.height:.1f}' rx='6' "
        "fill='var(--chart-paper)' stroke='var(--chart-grid)'/>"
    )
    return f"<g>{frame}{''.join(texts)}</g>"


def _node(name: str, place: tuple[float, float], *, is_wide: bool) -> str:
    x, y = _point(place, is_wide=is_wide)
    label = shown.html(name if len(name) <= _MOST_NODE else name[: _MOST_NODE - 1] + "…")
    half = max(_NODE, len(name[:_MOST_NODE]) * _LETTER / 2 + 6)
    return (
        f"<g><title>{shown.html(name)}</title><rect x='{x - half:.1f}' y='{y - _NODE:.1f}' width='{2 * half:.1f}' "
        f"height='{2 * _NODE}' rx='{_NODE}' fill='var(--chart-paper)' stroke='currentColor' stroke-width='1.5'/>"
        f"<text x='{x:.1f}' y='{y + 4:.1f}' text-anchor='middle' class='strong'>{label}</text></g>"
    )
