"""Interactive dashboard.

    polling        reads the database and posts immutable messages; nothing else queries
    resource       base class of the tables in views/
    command_table  commands with their keys, arguments, help and permissions
    actions        implementations of the commands, through the services of the Runtime

Widgets receive values and post messages to their screen. Importing this package does not import
Textual; importing `dashboard.app` does.
"""
