"""What simulations say of a captured connection: its path as a scenario, a replay, and advice."""
