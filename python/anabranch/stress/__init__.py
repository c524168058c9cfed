"""Counterexample search: paths and events on which a congestion control fails a stated goal (``anabranch stress``)."""
