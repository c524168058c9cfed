"""Diagnosis of captures of the same connections at several points of a path: what each part of the path did to them."""
