"""Interactive dashboard.

    polling        reads the database and posts immutable messages; nothing else queries
    resource       base class of the tables in views/
    command        definition of a command, and lookup by name, key and permission
    command_table  all commands, with their keys, arguments, help and permissions in commands/
    actions        implementations of the commands, through the services of the Runtime
    screens        what the commands act on; they get the commands from the session

Widgets receive values and post messages to their screen. Importing this package does not import
Textual; importing `dashboard.app` does.
"""
