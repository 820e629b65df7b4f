"""Activity of agents: what they say and do, live and as a transcript."""
