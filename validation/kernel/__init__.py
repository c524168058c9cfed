"""The running kernel's TCP over a path in user space: the measurement of ``validation/kernel_repeats.py``.

Needs Linux, root, ``/dev/net/tun``, ``ip`` and a C compiler. A run changes only the network
namespaces that it makes. They have no name and end with the run's last process.
"""
