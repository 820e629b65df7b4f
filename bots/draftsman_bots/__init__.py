"""Chat bots: a package for each channel, independent of the others.

Importing this package loads no chat library.
"""
