"""Gateway of calls to models, which leave the sandbox here."""
