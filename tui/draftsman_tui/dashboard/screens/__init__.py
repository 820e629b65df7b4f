"""What fills the screen: the one with the table, and dialogs that return a value."""
