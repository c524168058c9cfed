"""Figures from implementations that are not ours, row by row beside what the engine gives.

One module per file of figures, each with a page in ``docs/validation``; ``__main__`` runs them.
"""
