"""Administration."""
