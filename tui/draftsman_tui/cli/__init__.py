"""The command line: a module for each family of commands; `main` is the process root."""
