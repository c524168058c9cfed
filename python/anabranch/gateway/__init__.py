"""``anabranch gateway``: starts the daemon ``anabranch-gateway``, and predicts the effect of a configuration.

:mod:`~anabranch.gateway.config` reads the daemon's configuration and :mod:`~anabranch.gateway.lines` the properties of
its paths. :mod:`~anabranch.gateway.plan` simulates both. :mod:`~anabranch.gateway.daemon` finds the daemon.
"""
