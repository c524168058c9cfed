"""Charts of reports and of the documentation: their model in Python, and the component that draws them in a page."""

from anabranch.charts.embed import assets, place, place_all, stack
from anabranch.charts.model import Chart, SeriesColumns

__all__ = ["Chart", "SeriesColumns", "assets", "place", "place_all", "stack"]
