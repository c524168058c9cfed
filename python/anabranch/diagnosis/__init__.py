"""What a capture shows of its TCP connections: the diagnosis, which connections, its text, and following an interface.

Simulating a connection again is the work of :mod:`anabranch.fitted`.
"""
