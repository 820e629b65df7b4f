"""Parts of the APIs of forges, for each kind."""
