"""Agents that travel with draftsman: programs of their own, which know it by its protocol alone."""
