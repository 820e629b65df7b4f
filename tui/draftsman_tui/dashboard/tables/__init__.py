"""Tables: rows, filters, columns and saved views."""
