"""Behaviour scripts: packetdrill's language on a profile of our TCP, or on a Linux kernel."""
