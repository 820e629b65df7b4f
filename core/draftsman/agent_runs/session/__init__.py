"""The session of a worker with the agent of a run: messages, questions, usage and saved work."""
