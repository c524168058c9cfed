"""The result of one run: its summary, its tables, the names of its figures, and figures as text.

Tables are written to files and read again here.
"""
