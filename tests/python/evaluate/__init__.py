"""Tests of ``anabranch.evaluate``."""
