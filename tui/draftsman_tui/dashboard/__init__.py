"""Interactive dashboard.

    polling        reads the database and posts immutable messages; nothing else queries
    resource       base class of the tables in views/
    commands       commands with their keys, arguments, help and permissions
    command_table  all commands, and their lookup by name, key and permission
    actions        implementations of the commands, through the services of the Runtime

Widgets receive values and post messages to their screen. Importing this package does not import
Textual; importing `dashboard.app` does.
"""
