"""Statistics of few runs: means and their intervals, intervals that remain valid after every run, fairness.

Nothing here depends on the origin of the figures.
"""
