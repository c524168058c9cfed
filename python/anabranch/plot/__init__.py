"""Static figures for papers: PDF, SVG and PNG, the same bytes for the same data."""
