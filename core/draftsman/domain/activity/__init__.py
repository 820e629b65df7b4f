"""Activity of agents."""
