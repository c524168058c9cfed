"""Reference vectors: what each built-in congestion control does in small scenarios, to compare another stack with."""
