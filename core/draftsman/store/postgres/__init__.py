"""PostgreSQL: connections, errors, notifications and the schema."""
