"""Commands about repositories: profiles, labels and validation."""
