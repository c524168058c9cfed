"""Tests of the live engine: real packets between namespaces that each run creates."""
