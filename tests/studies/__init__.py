"""Tests of the shipped studies."""
