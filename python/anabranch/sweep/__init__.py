"""Sweeps: the choice of points, their runs on this machine or a cluster, and the storage of finished runs.

Comparisons, studies and ``--store`` use the stored runs.
"""
