"""Comparisons of `anabranch diagnose` with the truth."""
