"""Metrics of queues, questions, deliveries, workers and costs that are read from the database."""
