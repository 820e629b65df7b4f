"""Adapters of the measured queues, draftsman included: a module with a class for each queue."""
