"""Statistics of few runs: means and their intervals, intervals that may be looked at after every run, fairness.

Nothing here knows where figures are from.
"""
