"""Documents of messages: built once for every medium, and printed by that of each channel."""
