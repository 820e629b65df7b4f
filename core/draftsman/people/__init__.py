"""People: accounts, permissions, hours, links and sessions."""
