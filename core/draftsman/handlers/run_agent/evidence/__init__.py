"""Evidence of an agent's work: its tests on both commits, and the signed statement."""
