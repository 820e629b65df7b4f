"""Forges: matching of repositories, texts of pull requests, and states of checks. Pure."""
