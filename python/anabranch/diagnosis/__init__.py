"""Diagnosis of a capture's TCP connections: choice of connections, text, and continuous diagnosis of an interface.

:mod:`anabranch.fitted` simulates connections.
"""
