"""Agents, as programs that know only the protocol."""
