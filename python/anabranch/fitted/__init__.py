"""Models of a captured connection for simulation: its path as a scenario, a replay, and advice."""
