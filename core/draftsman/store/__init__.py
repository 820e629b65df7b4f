"""Store: with the migrations and the embedded server, the only code that contains SQL.

Each module runs the named queries of a file in `queries/`; a function has the name of its query.
"""
