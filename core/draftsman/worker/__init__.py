"""Worker: claims, heartbeat, execution, the registry, and the sweeps of the leader."""
