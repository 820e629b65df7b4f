"""Fake forges: real HTTP servers with an API and git, which refuse what the real forges refuse."""
