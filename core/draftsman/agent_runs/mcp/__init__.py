"""Model Context Protocol: the tools that a run offers to its agent."""
