"""The look of every static figure, and saving it so that files repeat byte for byte."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import shown

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Told apart by every kind of eye (after Okabe and Ito's palette), and dark enough on paper."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("pdf", "svg", "png")
MAX_LINE_POINTS = 4_000
MAX_VECTOR_MARKS = 5_000
"""More marks than this are drawn as an image inside the vector file: a PDF of a million circles opens nowhere."""

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (5.0, 3.1),
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    # Identifiers inside an SVG are random unless salted.
    "svg.fonttype": "path",
    "svg.hashsalt": "anabranch",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save with our settings, whatever the user's own are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float = 5.0, height: float = 3.1) -> tuple[Figure, Axes]:
    """A figure of one panel; ``width`` and ``height`` in inches. No window system is asked."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def add_legend(owner: Axes | Figure, lines: Sequence[Artist], names: Sequence[str], **options: Any) -> None:
    """A legend with these names as they are: matplotlib takes a leading underscore for "no entry"."""
    legend = owner.legend(lines, [" "] * len(lines), fontsize=8, **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(shown.figure(name))


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem``.pdf, .svg and .png, without dates, so that equal figures are equal files.

    A character that the font does not have (it has no CJK) is drawn as a box.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Producer": None, "Creator": "anabranch"},
        "svg": {"Date": None, "Creator": "anabranch"},
        "png": {"Software": None},
    }
    paths = []
    for suffix in FORMATS:
        path = stem.with_name(f"{stem.name}.{suffix}")
        # In memory first: of a disk that fills up matplotlib makes an error of its own.
        drawn = io.BytesIO()
        with warnings.catch_warnings():
            # Names are data: neither is a fault of ours, and the terminal is not the place.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
            warnings.filterwarnings("ignore", message="constrained_layout not applied")
            figure.savefig(drawn, format=suffix, metadata=metadata[suffix])
        path.write_bytes(drawn.getbuffer())
        paths.append(path)
    return paths


def thin(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most :data:`MAX_LINE_POINTS` points of a line that look the same: lowest and highest of each slice."""
    import numpy as np

    if len(x) <= MAX_LINE_POINTS:
        return x, y
    edges = np.linspace(0, len(x), MAX_LINE_POINTS // 2 + 1).astype(int)
    keep: list[int] = []
    for low, high in itertools.pairwise(edges):
        part = y[low:high]
        if len(part) == 0 or np.all(np.isnan(part)):
            continue
        a, b = int(low + np.nanargmin(part)), int(low + np.nanargmax(part))
        keep.extend(sorted({a, b}))
    return x[keep], y[keep]


def thin_points(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points of a cloud that can be told apart at print size: one for each cell of a fine raster."""
    import numpy as np

    if len(x) <= MAX_VECTOR_MARKS:
        return x, y

    def cells(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        scaled = (np.nan_to_num(values, nan=low) - low) / ((high - low) or 1.0) * count
        return scaled.astype(np.int64)

    _, first = np.unique(cells(x, 1000) * 10_000 + cells(y, 600), return_index=True)
    first.sort()
    return x[first], y[first]
