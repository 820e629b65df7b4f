"""Rows of forges."""
