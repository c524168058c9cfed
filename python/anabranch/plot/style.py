"""The look of every static figure, and saving it so that files repeat byte for byte."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anabranch.extras import need
from anabranch.text import shown

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from numpy.typing import NDArray

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Distinguishable with every kind of colour vision (after Okabe and Ito's palette), and dark enough on paper."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS: tuple[str, ...] = ("pdf", "svg", "png")
DPI = 200
MAX_LINE_POINTS = 4_000
MOST_TOLD = 10
"""Largest number of names in a warning."""
MAX_VECTOR_MARKS = 5_000
"""Above this number, marks are drawn as an image inside the vector file: no viewer opens a PDF of a million circles."""

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
    "savefig.dpi": DPI,
    # Identifiers inside an SVG are random unless salted.
    "svg.fonttype": "path",
    "svg.hashsalt": "anabranch",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save with our settings instead of the user's. A warning names the characters that the font lacks."""
    need("matplotlib", "a figure")
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        # The replacements in a figure do not depend on the figures of another run.
        _spelled.clear()
        yield
        _tell()


def new_figure(width: float = 5.0, height: float = 3.1) -> tuple[Figure, Axes]:
    """A figure of one panel; ``width`` and ``height`` in inches. It needs no window system."""
    need("matplotlib", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def add_legend(owner: Axes | Figure, lines: Sequence[Artist], names: Sequence[str], **options: Any) -> None:
    """A legend with exactly these names: matplotlib would hide a name that begins with an underscore."""
    legend = owner.legend(lines, [" "] * len(lines), fontsize=8, **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(shown.figure(name))


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem``.pdf, .svg and .png, without dates, so that equal figures are equal files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    spell(figure)
    stem.parent.mkdir(parents=True, exist_ok=True)
    # matplotlib does not annotate their methods.
    pdf, svg, png = cast(Any, FigureCanvasPdf), cast(Any, FigureCanvasSVG), cast(Any, FigureCanvasAgg)
    printers: dict[str, Callable[[io.BytesIO], None]] = {
        "pdf": lambda drawn: pdf(figure).print_pdf(
            drawn, metadata={"CreationDate": None, "Producer": None, "Creator": "anabranch"}
        ),
        "svg": lambda drawn: svg(figure).print_svg(drawn, metadata={"Date": None, "Creator": "anabranch"}),
        "png": lambda drawn: png(figure).print_png(drawn, metadata={"Software": None}),
    }
    paths = []
    with _laid_out(figure), warnings.catch_warnings():
        # Names are data: this warning is no fault of ours, and does not belong on the terminal.
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        for suffix in FORMATS:
            path = stem.with_name(f"{stem.name}.{suffix}")
            # A vector format sets 72, the unit of its coordinates.
            figure.set_dpi(DPI)
            # Draw in memory first: on a full disk, matplotlib raises an error of a different type.
            drawn = io.BytesIO()
            printers[suffix](drawn)
            path.write_bytes(drawn.getbuffer())
            paths.append(path)
    return paths


_NO_GLYPH = r"Glyph \d+ .* missing from"


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay the figure out once: ``savefig`` would do so, and draw twice, for each format."""
    canvas, dpi, engine = figure.canvas, figure.get_dpi(), figure.get_layout_engine()
    figure.set_dpi(DPI)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_canvas(canvas)
        figure.set_dpi(dpi)
        figure.set_layout_engine(engine)


class FigureWarning(UserWarning):
    """A figure shows a name differently from its original."""


_spelled: dict[str, str] = {}
"""Text that the fonts lack, and its replacement in the figures."""


def spell(figure: Figure) -> None:
    """Replace characters that the fonts lack (DejaVu Sans has no CJK): they would all be drawn as the same box.

    The replacement is the characters' code points, or a number if these are too long for a label.
    """
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_text(_spell(text.get_text(), text.get_fontproperties()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _spell_ticks(axis)


def _spell_ticks(axis: Axis) -> None:
    """The same for tick labels, which are created when the figure is drawn."""
    formatter, properties = axis.get_major_formatter(), axis.get_major_ticks(1)[0].label1.get_fontproperties()
    labels = formatter.format_ticks

    def spelled(values: Any) -> list[str]:
        return [_spell(label, properties) for label in labels(values)]

    formatter.format_ticks = spelled  # type: ignore[method-assign]


def _spell(label: str, properties: FontProperties) -> str:
    from matplotlib import font_manager
    from matplotlib.cbook import is_math_text

    if label.isascii() or is_math_text(label):
        return label
    font = font_manager.get_font(font_manager.findfont(properties))
    runs: list[tuple[bool, str]] = [
        (is_missing, "".join(run))
        for is_missing, run in itertools.groupby(label, lambda c: c not in "\n\t" and not font.get_char_index(ord(c)))
    ]
    if not any(is_missing for is_missing, _ in runs):
        return label
    fits = (
        len(label) + sum(len(_code_points(run)) - len(run) for is_missing, run in runs if is_missing) <= shown.MAX_LABEL
    )
    for is_missing, run in runs:
        if is_missing:
            _spelled.setdefault(run, _code_points(run) if fits else f"[{len(_spelled) + 1}]")
    return "".join(_spelled[run] if is_missing else run for is_missing, run in runs)


def _code_points(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)


def _tell() -> None:
    """Warn of the characters that were replaced."""
    if not _spelled:
        return
    told = ", ".join(f"{shown.plain(run)} (shown as {spelled})" for run, spelled in list(_spelled.items())[:MOST_TOLD])
    more = f", and {len(_spelled) - MOST_TOLD} more" if len(_spelled) > MOST_TOLD else ""
    warnings.warn(f"the font of the figures has no characters for {told}{more}", FigureWarning, stacklevel=3)


def thin(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most :data:`MAX_LINE_POINTS` points of a line of the same look: the lowest and highest of each slice."""
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
    """The points of a cloud that are distinguishable in print: one for each cell of a fine raster."""
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
