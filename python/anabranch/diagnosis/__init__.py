"""Diagnosis of the TCP connections of a capture, the choice of connections, its text, and following an interface.

Simulating a connection again is the work of :mod:`anabranch.fitted`.
"""
