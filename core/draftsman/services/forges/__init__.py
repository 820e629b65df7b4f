"""Events of forges, and the follow-ups on pull requests."""
