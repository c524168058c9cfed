"""Draw the dependencies of the crates, and of the rooms of the Python package, as two pictures.

    python tools/draw_structure.py TREE crates.svg python.svg

A box is on the floor above everything that it depends on. A line that follows from others is left out. Filled
boxes are the crates that the gateway's daemon links, and the folders among the Python modules. Red lines are circles.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Mapping
from pathlib import Path

import check_layers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Graph = Mapping[str, set[str]]

WIDTH, ROW, GAP, LETTER, MARGIN = 440, 24, 26, 7.3, 10
STYLE = (
    "rect{fill:#fff;stroke:#444}.page{stroke:none}.mark{fill:#bcd9ff}"
    "path{fill:none;stroke:#8a929b}.circle{stroke:#c22;stroke-width:2}text{font:12px sans-serif;text-anchor:middle}"
    "@media(prefers-color-scheme:dark){rect{fill:#2b303b;stroke:#aab}.page{fill:#1e2129}"
    ".mark{fill:#1f4d86}path{stroke:#77808c}.circle{stroke:#f66}text{fill:#eee}}"
)


def crates(root: Path) -> Graph:
    """The workspace crates on which each crate depends, without its test dependencies."""
    graph = {}
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text("utf-8"))
        tables = [package, *package.get("target", {}).values()]
        names = {name for table in tables for name in table.get("dependencies", {}) if name.startswith("anabranch")}
        graph[manifest.parent.name] = {name.removeprefix("anabranch-") for name in names}
    return graph


def rooms(root: Path) -> Graph:
    """The rooms and modules that each room of the Python package imports when it is loaded."""
    package = root / "python" / "anabranch"
    graph: dict[str, set[str]] = {}
    for file in sorted(package.rglob("*.py")):
        if file == package / "__init__.py":
            continue
        room = file.relative_to(package).parts[0].removesuffix(".py")
        found = check_layers.python_imports(ast.parse(file.read_text("utf-8")))
        graph.setdefault(room, set()).update(name.split(".")[1] for name, is_called in found if not is_called)
    return {room: {other for other in named if other in graph} - {room} for room, named in graph.items()}


def reach(graph: Graph) -> Graph:
    """Everything that each box depends on, directly or indirectly."""
    found = {name: set(others) for name, others in graph.items()}
    for via in graph:
        for others in found.values():
            if via in others:
                others.update(found[via])
    return found


def place(graph: Graph, below: Graph) -> dict[str, tuple[float, float]]:
    """The centre of each box. Boxes of a circle are on one floor."""
    level = dict.fromkeys(graph, 0)
    for _ in graph:
        for name, others in graph.items():
            level[name] = max([level[name], *(level[o] + 1 for o in others if name not in below[o])])
            level.update({peer: level[name] for peer in below[name] if name in below[peer]})
    floors = [[name for name in graph if level[name] == floor] for floor in range(max(level.values()), -1, -1)]
    spot: dict[str, tuple[float, float]] = {}
    for _ in range(12):
        y = MARGIN + ROW / 2
        for floor in floors:
            near = {n: [spot[o][0] for o in graph if o in spot and (o in graph[n] or n in graph[o])] for n in floor}
            floor.sort(key=lambda n: sum(near[n]) / len(near[n]) if near[n] else WIDTH / 2)
            rows: list[list[str]] = [[]]
            for name in floor:
                if sum(map(width, rows[-1])) + width(name) + 8 * len(rows[-1]) > WIDTH - 2 * MARGIN:
                    rows.append([])
                rows[-1].append(name)
            for row in rows:
                space = (WIDTH - sum(map(width, row))) / (len(row) + 1)
                x = space
                for name in row:
                    spot[name] = (x + width(name) / 2, y)
                    x += width(name) + space
                y += ROW + 6
            y += GAP
    return spot


def width(name: str) -> float:
    """Width of a box."""
    return len(name) * LETTER + 12


def draw(graph: Graph, marked: set[str], title: str) -> str:
    """The picture as SVG."""
    below = reach(graph)
    spot = place(graph, below)
    height = max(y for _, y in spot.values()) + ROW / 2 + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        f"<title>{title}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>',
    ]
    for name, others in graph.items():
        for other in sorted(others):
            is_circle = name in below[other]
            if not is_circle and any(other in below[via] and via not in below[other] for via in others - {other}):
                continue
            (x, y), (to_x, to_y) = spot[name], spot[other]
            bend = (to_y - y) / 2
            kind = ' class="circle"' if is_circle else ""
            points = (x, y, x, y + bend, to_x, to_y - bend, to_x, to_y)
            out.append('<path{} d="M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}"/>'.format(kind, *points))
    for name, (x, y) in spot.items():
        kind = ' class="mark"' if name in marked else ""
        left, top = x - width(name) / 2, y - ROW / 2
        out.append(f'<rect{kind} x="{left:.0f}" y="{top:.0f}" width="{width(name):.0f}" height="{ROW}" rx="4"/>')
        out.append(f'<text x="{x:.0f}" y="{y + 4:.0f}">{name}</text>')
    return "\n".join([*out, "</svg>\n"])


def pictures(root: Path) -> tuple[str, str]:
    """The pictures of the crates and of the rooms of a tree."""
    linked = crates(root)
    daemon = {"gatewayd", *reach(linked)["gatewayd"]}
    folders = {path.name for path in (root / "python" / "anabranch").iterdir() if path.is_dir()}
    return (
        draw(linked, daemon, "Crates, and those that the gateway's daemon links"),
        draw(rooms(root), folders, "Rooms and modules of the Python package"),
    )


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tree", "crates", "python"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    for file, text in zip((options.crates, options.python), pictures(options.tree), strict=True):
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
