"""What runs for ever: the worker, its heart, its ear, and the leader."""
