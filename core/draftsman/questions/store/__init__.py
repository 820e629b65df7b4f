"""Queries of questions, a function each."""
