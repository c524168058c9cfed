"""The Linux kernel in virtual time: User-Mode Linux, whose clock does not advance while a process computes.

:mod:`~anabranch.kernel.build` makes kernels, :mod:`~anabranch.kernel.images` finds them,
:mod:`~anabranch.kernel.machine` runs a program in one, :mod:`~anabranch.kernel.calls` calls the engine in a guest, and
:mod:`~anabranch.kernel.engine` runs scenarios.
"""
