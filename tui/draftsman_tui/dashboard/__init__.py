"""Interactive dashboard.

    polling        reads the database and posts immutable messages; nothing else queries
    resource       base class of the tables in the modules `view`
    tab            definition of a tab of a job, in the modules `tab`
    command        definition of a command, and lookup by name, key and permission
    command_table  all commands, of the modules that are imported by their name
    actions        the commands with their keys, arguments, help and permissions
    screens        what the commands act on; they get the commands from the session

Widgets receive values and post messages to their screen. Importing this package does not import
Textual; importing `dashboard.app` does.
"""
