"""Congestion controls that an operator installs: records, systemd units, and the connections that use them."""
