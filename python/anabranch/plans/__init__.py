"""Predicts by simulation what a component of the studies would bring on a link, and whom it would harm."""
