"""Calls to the outside: only to where they may go, and never more than was asked for."""
