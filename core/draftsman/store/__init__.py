"""Rows of draftsman: the only place, with migrations and the embedded server, that knows SQL.

Each module runs the named queries of one file in `queries/`; a function has its query's name.
"""
