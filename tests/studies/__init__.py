"""Tests of the studies that ship."""
