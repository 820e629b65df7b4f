"""Evidence: coverage, findings of tests and the signed statement of published work."""
