"""The command line: one module for each family of commands; `main` is the process root."""
