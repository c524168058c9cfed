"""Tests of behaviour with the TCP of a Linux kernel in virtual time: what they compare is exact."""
