"""Runs: claims, checkpoints, settlement and the worker registry."""
