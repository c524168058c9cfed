"""``anabranch gateway``: hands over to the daemon ``anabranch-gateway``, and predicts what a configuration of it gives.

:mod:`~anabranch.gateway.config` reads the daemon's configuration, :mod:`~anabranch.gateway.lines` what its paths are
like, :mod:`~anabranch.gateway.plan` simulates both, and :mod:`~anabranch.gateway.daemon` finds the daemon.
"""
