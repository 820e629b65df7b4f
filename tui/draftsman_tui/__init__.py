"""Terminal front ends. Empty, because importing it must not load Textual or a command."""
