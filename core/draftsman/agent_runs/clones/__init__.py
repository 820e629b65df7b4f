"""Clones of repositories: mirrors, workspaces and published branches."""
