"""Empty on purpose: importing it must load neither Textual nor any command."""
