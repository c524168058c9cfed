"""The running kernel's TCP over a path in user space: what ``validation/kernel_repeats.py`` is made of.

Needs Linux, root, ``/dev/net/tun``, ``ip`` and a C compiler. Nothing is touched outside of the namespaces that a run
makes for itself, and those have no name: they are gone with the run's last process.
"""
