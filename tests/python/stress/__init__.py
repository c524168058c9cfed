"""Tests of :mod:`anabranch.stress`."""
