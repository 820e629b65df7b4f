"""How work is done: one handler a job type, what it is given, and how agents are driven."""
