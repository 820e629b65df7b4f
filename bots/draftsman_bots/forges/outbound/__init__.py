"""Messages to forges."""
