"""Clones of repositories: git, mirrors, sources, workspaces and their cleanup."""
