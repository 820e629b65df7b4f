"""Policies of repositories: which changes are denied, and which need an approval."""
