"""Nouns of draftsman: values and pure decisions, without I/O."""
