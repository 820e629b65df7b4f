"""Costs: budgets, reservations of model calls and usage."""
