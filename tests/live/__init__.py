"""Tests of the live engine: real packets between namespaces that each run makes for itself."""
