"""Long-running loops: worker, heartbeat, listener, leader and deliveries."""
