"""Jobs: submission, control, bulk retry and queries."""
