"""Tests of behaviour with the TCP of a Linux kernel in virtual time: their comparisons are exact."""
