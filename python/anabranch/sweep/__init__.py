"""Sweeps: which points there are, making their runs on this machine or a cluster, and keeping finished ones.

Comparisons, studies and ``--store`` find kept runs here.
"""
