"""The Linux kernel in virtual time: User-Mode Linux, whose clock stands still while anything runs.

:mod:`~anabranch.kernel.build` makes kernels, :mod:`~anabranch.kernel.images` finds them,
:mod:`~anabranch.kernel.machine` runs a program in one, :mod:`~anabranch.kernel.calls` has the engine called there, and
:mod:`~anabranch.kernel.engine` makes runs of scenarios.
"""
