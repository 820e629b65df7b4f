"""Database: connections, transactions, queries by name, migrations and the embedded server."""
