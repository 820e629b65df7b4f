"""Permission rules: commands of agents that people allow for good."""
